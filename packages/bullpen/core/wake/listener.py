"""Waits for hints: a set of topics. `ALL_TOPICS` means: look at everything."""

from __future__ import annotations

from typing import Protocol

ALL_TOPICS = frozenset({"*"})


class Listener(Protocol):
    """Hears what other processes commit."""

    address: str | None
    """Where it can be woken, for the register of workers."""

    def wait(self, timeout: float) -> frozenset[str]:
        """The topics that were rung for, or nothing after the timeout."""
        ...

    def interrupt(self) -> None:
        """Let a wait in another thread end at once."""
        ...

    def close(self) -> None:
        """Hear no more."""
        ...
