"""Waits for the end of processes that are not this one's children.

One that has ended and whose parent has not asked how has ended all the same. psutil would wait for
it: for ever in a container whose first process adopts what others left, and then forgets it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import psutil

LOOK_SECONDS = 0.05


def still_there(processes: Sequence[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Those that have not ended after this time."""
    deadline = time.monotonic() + seconds
    while alive := [each for each in processes if not _ended(each)]:
        if time.monotonic() >= deadline:
            break
        time.sleep(LOOK_SECONDS)
    return alive


def _ended(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
