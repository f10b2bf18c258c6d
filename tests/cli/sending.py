"""`bullpen send` in a process of its own, and a test that does the processor's work."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from bullpen.core.background import register_worker
from bullpen.core.clock import HOUR
from bullpen.core.events.append import append_event
from bullpen.core.events.conversation import AgentProgress
from bullpen.core.message import Claim
from bullpen.core.store.base import Store
from tests.cli.command import PROGRAM, Bullpen
from tests.cli.open_store import company, direct
from tests.conformance.verbs import do, try_claim
from tests.processor.working import eventually

ONLY_WHEN_WOKEN = (
    sys.executable,
    "-c",
    "import bullpen.cli.wait as following; following.POLL_SECONDS = 600.0\n"
    "from bullpen.cli.main import main; main()",
)
"""The command, which does not look every second whether something has happened."""


@pytest.fixture
def office(bullpen: Bullpen) -> Bullpen:
    """Three agents, two of them in the team dev."""
    return company(bullpen)


@contextmanager
def at_work(bullpen: Bullpen) -> Iterator[Store]:
    """The store, with a processor in the register: this test does its work."""
    sign_in(bullpen)
    with direct(bullpen) as store:
        yield store


def sign_in(bullpen: Bullpen) -> None:
    """Have a processor in the register, which is thought to live for longer than any test takes."""
    with direct(bullpen, time.time_ns() // 1_000_000 + HOUR) as store:
        do(store, register_worker, "processor")


@contextmanager
def sending(
    bullpen: Bullpen, *args: str, program: Sequence[str] = PROGRAM, **more: str
) -> Iterator[subprocess.Popen[str]]:
    """`bullpen send` in a process of its own, with pipes."""
    process = subprocess.Popen(
        [*program, "send", *args],
        env=bullpen.environment(**more),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_heed_all,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _heed_all() -> None:
    """The tests themselves may have been started by `nohup`."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def claimed(store: Store) -> Claim:
    """Wait for a message to claim."""
    found: list[Claim] = []

    def got() -> bool:
        claim = try_claim(store)
        found.extend([] if claim is None else [claim])
        return claim is not None

    eventually(got, "there is something to claim")
    return found[0]


def line(stream: object) -> str:
    """The next line of a pipe."""
    return str(stream.readline())  # type: ignore[attr-defined]


def say(store: Store, claim: Claim, text: str) -> None:
    """What a run says while it works."""
    do(
        store,
        lambda tx: append_event(tx, AgentProgress(claim.primary, text=text)),
    )
