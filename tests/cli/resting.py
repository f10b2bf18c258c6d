"""What a process takes while it has nothing to do."""

from __future__ import annotations

import time

import psutil

from tests.processor.working import eventually


def comes_to_rest(process: psutil.Process, share: float, seconds: float = 1.0) -> None:
    """Wait until it takes less than this share of a core for so long, its start being over."""

    def rests() -> bool:
        before, began = process.cpu_times(), time.monotonic()
        time.sleep(seconds)
        after, took = process.cpu_times(), time.monotonic() - began
        return (after.user + after.system - before.user - before.system) / took < share

    eventually(rests, f"it takes less than {share:.0%} of a core")
