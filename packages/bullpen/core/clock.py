"""Time as a parameter: integer milliseconds since 1970, UTC."""

from __future__ import annotations

import time
from typing import Protocol

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

MAX_WAIT_SECONDS = 5.0
"""Nobody waits longer for a moment without a look at the clock: it may be set, or have slept."""


class Clock(Protocol):
    """Tells the time in milliseconds."""

    def now(self) -> int:
        """The present moment."""
        ...


class SystemClock:
    """The clock of the machine."""

    def now(self) -> int:
        """The present moment, by the machine's clock."""
        return time.time_ns() // 1_000_000


def seconds_until(moment: int | None, now: int) -> float:
    """How long to wait for a moment, or for one that nobody knows yet."""
    if moment is None:
        return MAX_WAIT_SECONDS
    return min(max((moment - now) / SECOND, 0.0), MAX_WAIT_SECONDS)
