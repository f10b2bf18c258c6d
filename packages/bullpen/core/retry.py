"""RetryPolicy: the delay before the next attempt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bullpen.core.clock import SECOND

if TYPE_CHECKING:
    from bullpen.core.settings import Settings

MAX_DOUBLINGS = 30
"""Keeps the power small; every realistic `longest` is reached earlier."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential back-off with full jitter. The only place that computes a delay.

    The delay after failure n is random between 0 and `base * 2**(n - 1)`, limited to `longest`,
    and never shorter than `base`. Full jitter spreads the retries of messages that failed together
    over the whole interval, so that they do not reach the provider together again.

    With the settings' defaults (`base` 2 seconds, `longest` 5 minutes):

        failure          1     2     3     4     5     6     7     8     9 and later
        longest delay    2 s   4 s   8 s   16 s  32 s  64 s  2:08  4:16  5:00
        mean delay       2 s   2.5 s 4.3 s 8.1 s 16 s  32 s  64 s  2:08  2:30

    A message with 5 attempts waits 4 times before it is dead: on average 17 seconds, at most 30.
    """

    base: int
    """The shortest delay, in milliseconds."""
    longest: int
    """The longest delay, in milliseconds. A provider's own `retry_after` may be longer."""
    random: Callable[[], float]
    """A new random number from 0 to 1 for every call."""

    @classmethod
    def from_settings(cls, settings: Settings, random: Callable[[], float]) -> RetryPolicy:
        """The policy of `retry_base_seconds` and `retry_max_seconds`."""
        return cls(
            base=settings.retry_base_seconds * SECOND,
            longest=settings.retry_max_seconds * SECOND,
            random=random,
        )

    def delay(self, failures: int, retry_after: int | None = None) -> int:
        """The delay in milliseconds after this many failures; `retry_after` overrides it."""
        if retry_after is not None:
            return max(0, retry_after)
        doublings = min(max(failures, 1) - 1, MAX_DOUBLINGS)
        ceiling = min(self.longest, self.base * 2**doublings)
        return max(min(self.base, self.longest), int(ceiling * self.random()))
