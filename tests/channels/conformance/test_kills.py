"""kill -9 between any two steps in and out: nothing is lost, nothing arrives twice."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bullpen.core.settings.accounts import account_variable
from tests.channels.conformance.conftest import Account, account
from tests.channels.conformance.harness import KINDS
from tests.processor.working import eventually
from tests.stores import Stores

ROOT = Path(__file__).resolve().parents[3]
STEPS = (
    *(("write-before", each) for each in (2, 4, 6)),
    *(("write-after", each) for each in (3, 5, 7)),
    *(("send-before", each) for each in (1, 2)),
    *(("send-after", each) for each in (1, 2)),
)
"""Where the process dies: a transaction or a send, by their number since its start."""
TEXT = "\n\n".join(f"Paragraph {each}: " + "words and more words " * 25 for each in range(12))
SOON = 60.0


def environment(served: Account) -> dict[str, str]:
    """The environment of a process for this account."""
    settings = served.store.settings
    given = {
        "BULLPEN_HOME": str(settings.home),
        "BULLPEN_WORKSPACE": str(settings.workspace),
        "BULLPEN_DEFAULT_AGENT": settings.default_agent,
        "BULLPEN_DELIVERY_LEASE_SECONDS": "3",
        "BULLPEN_RETRY_BASE_SECONDS": "1",
        "BULLPEN_RETRY_MAX_SECONDS": "2",
    }
    if settings.database_url:
        given["BULLPEN_DATABASE_URL"] = settings.database_url
    for name, value in served.platform.settings().items():
        given[account_variable(f"{served.channel}.{name}")] = value
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BULLPEN_")}
    return {**kept, **given}


@contextmanager
def child(
    served: Account, step: str = "never", count: int = 0
) -> Iterator[subprocess.Popen[bytes]]:
    """The channel's process, which may die at a step; it is killed at the end of the block."""
    command = (sys.executable, "-m", "tests.channels.conformance.child", served.channel, step)
    with (served.store.settings.home / "child.log").open("ab") as log:
        process = subprocess.Popen(
            (*command, str(count)),
            cwd=ROOT,
            env=environment(served),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait(SOON)


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_kill_9_between_any_two_steps_loses_and_repeats_nothing(stores: Stores, name: str) -> None:
    kind = KINDS[name]
    with account(stores, stores.settings("sqlite"), kind) as served:
        said = ["the first contact"]
        ids: list[int] = []
        with child(served):
            eventually(lambda: served.state()[0] == "up", "it is up")
            served.say(said[0])
            served.stored(*said)
        for step, count in STEPS:
            with child(served, step, count) as process:
                said.append(f"said at {step} {count}")
                served.say(said[-1])
                ids.append(served.respond(f"{TEXT}\n\nat {step} {count}"))
                process.wait(SOON)
        with child(served):
            served.stored(*said)
            if kind.recovers:
                for each in ids:
                    served.ends(each, "acked")
            else:
                eventually(lambda: _settled(served), "every response is acked or unknown")
        together = "".join("".join(served.posts()).split())
        for (step, count), id_ in zip(STEPS, ids, strict=True):
            mark = "".join(f"at {step} {count}".split())
            expected = 1 if kind.recovers else together.count(mark)
            assert together.count(mark) == expected, (step, count, served.response(id_))
        if kind.recovers:
            assert together.count("Paragraph0:") == len(ids)
            assert [each["status"] for each in served.responses()] == ["acked"] * len(ids)


def _settled(served: Account) -> bool:
    return all(
        each["status"] == "acked" or (each["status"] == "unknown" and each["recover_at"] is None)
        for each in served.responses()
    )
