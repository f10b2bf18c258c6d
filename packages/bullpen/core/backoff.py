"""How long to wait before the next try: exponential with full jitter."""

from __future__ import annotations

from collections.abc import Callable


def backoff(attempt: int, base: int, most: int, chance: Callable[[], float]) -> int:
    """Milliseconds to wait after failure number `attempt`: from `base` to its 2nd, 4th, ... fold.

    Never more than `most`.
    """
    ceiling = min(most, base * 2 ** min(attempt, 30))
    return min(most, base + int((ceiling - base) * chance()))
