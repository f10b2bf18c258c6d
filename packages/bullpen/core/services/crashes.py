"""When a service that always comes back should not come back any more."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

MOST = 10
WITHIN_SECONDS = 600.0


@dataclass(slots=True)
class Crashes:
    """The ends of one service that nobody asked for, as far as they count."""

    ends: deque[float] = field(default_factory=deque)

    def ended(self, now: float) -> bool:
        """Count one; true if it is one too many within the time."""
        self.ends.append(now)
        while self.ends[0] <= now - WITHIN_SECONDS:
            self.ends.popleft()
        return len(self.ends) >= MOST

    def forget(self) -> None:
        """Begin anew: somebody has looked after it."""
        self.ends.clear()
