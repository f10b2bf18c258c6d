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
from tests.channels.conformance.kinds import EMAIL, KINDS
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
PARAGRAPHS = 12
SOON = 60.0


def mark_of(step: str, count: int, paragraph: int) -> str:
    """The beginning of a paragraph, which nothing else contains."""
    return f"At {step} {count}, paragraph {paragraph}:"


def text_of(step: str, count: int) -> str:
    """A text of several parts, each unlike all others: a look-up may compare them."""
    words = "words and more words " * 25
    return "\n\n".join(f"{mark_of(step, count, each)} {words}" for each in range(PARAGRAPHS))


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
    given["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))  # the package of a test
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
@pytest.mark.parametrize("name", [*KINDS, EMAIL.channel])
def test_kill_9_between_any_two_steps_loses_and_repeats_nothing(stores: Stores, name: str) -> None:
    kind = KINDS.get(name, EMAIL)
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
                ids.append(served.respond(text_of(step, count)))
                process.wait(SOON)
        with child(served):
            served.stored(*said)
            if kind.recovers:
                for each in ids:
                    served.ends(each, "acked")
            else:
                eventually(lambda: _settled(served), "every response is acked or unknown")
        together = "".join("".join(served.posts()).split())
        if kind.recovers:
            for (step, count), id_ in zip(STEPS, ids, strict=True):
                for each in range(PARAGRAPHS):
                    mark = "".join(mark_of(step, count, each).split())
                    assert together.count(mark) == 1, (mark, served.response(id_))
            assert [each["status"] for each in served.responses()] == ["acked"] * len(ids)


def _settled(served: Account) -> bool:
    return all(
        each["status"] == "acked" or (each["status"] == "unknown" and each["recover_at"] is None)
        for each in served.responses()
    )
