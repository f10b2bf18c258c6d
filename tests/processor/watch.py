"""A clock that a test moves."""

from __future__ import annotations


class Watch:
    """What is there in the place of time.monotonic()."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now
