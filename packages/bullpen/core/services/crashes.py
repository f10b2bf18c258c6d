"""When a service that always comes back should not come back any more."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

MAX_CRASHES = 10
CRASH_WINDOW_SECONDS = 600.0


@dataclass(slots=True)
class CrashCounter:
    """The ends of one service that nobody asked for, as far as they count."""

    ends: deque[float] = field(default_factory=deque)

    def ended(self, now: float) -> bool:
        """Count one; true if it is one too many within the time."""
        self.ends.append(now)
        while self.ends[0] <= now - CRASH_WINDOW_SECONDS:
            self.ends.popleft()
        return len(self.ends) >= MAX_CRASHES

    def forget(self) -> None:
        """Begin anew: somebody has looked after it."""
        self.ends.clear()
