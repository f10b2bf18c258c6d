"""What a process takes while it has nothing to do."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.processor.working import eventually

BILLION = 1e9


@dataclass(frozen=True, slots=True)
class Taken:
    """What a thread has taken so far, in seconds."""

    ran: float
    waited: float
    """While others had all the cores: a busy machine is no rest."""


def comes_to_rest(process: psutil.Process, share: float, seconds: float = 1.0) -> None:
    """Wait until it takes less than this share of a core for so long, its start being over."""

    def rests() -> bool:
        before, began = _taken(process), time.monotonic()
        time.sleep(seconds)
        after, took = _taken(process), time.monotonic() - began
        return sum(_share(before.get(each), now, took) for each, now in after.items()) < share

    eventually(rests, f"it takes less than {share:.0%} of a core")


def _share(before: Taken | None, now: Taken, took: float) -> float:
    """How much of the time in which a thread could have run it did."""
    ran = now.ran - (before.ran if before else 0.0)
    waited = now.waited - (before.waited if before else 0.0)
    return ran / max(took - waited, ran, 1e-3)


def _taken(process: psutil.Process) -> dict[int, Taken]:
    found = {}
    for each in process.threads():
        found[each.id] = Taken(each.user_time + each.system_time, 0.0)
        with suppress(OSError):  # a system that does not tell how long it waited
            path = Path(f"/proc/{process.pid}/task/{each.id}/schedstat")
            ran, waited, _ = map(int, path.read_text().split())
            found[each.id] = Taken(ran / BILLION, waited / BILLION)
    return found
