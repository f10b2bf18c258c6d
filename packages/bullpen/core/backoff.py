"""How long to wait before the next try: exponential with full jitter."""

from __future__ import annotations

from collections.abc import Callable


def backoff(attempt: int, base: int, most: int, chance: Callable[[], float]) -> int:
    """Milliseconds to wait after failure number `attempt`, from `base` to `most`."""
    ceiling = min(most, base * 2 ** min(attempt - 1, 30))
    return max(min(base, most), int(ceiling * chance()))
