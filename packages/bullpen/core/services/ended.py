"""Waits for the end of processes that are not this one's children.

One that has ended and whose parent has not asked how has ended all the same. psutil would wait for
it: for ever in a container whose first process adopts what others left, and then forgets it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import psutil

EXIT_POLL_SECONDS = 0.05


def wait_for_exit(processes: Sequence[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Those that have not ended after this time."""
    deadline = time.monotonic() + seconds
    while alive := [each for each in processes if not _has_exited(each)]:
        if time.monotonic() >= deadline:
            break
        time.sleep(EXIT_POLL_SECONDS)
    return alive


def _has_exited(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
