"""Time as a parameter: integer milliseconds since 1970, UTC."""

from __future__ import annotations

import time
from typing import Protocol

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR


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
