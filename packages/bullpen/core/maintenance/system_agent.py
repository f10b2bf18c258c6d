"""A system agent: a loop that keeps the store in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bullpen.core.store.base import Store


@dataclass(frozen=True, slots=True)
class MaintenanceJob:
    """A loop: what it is called, how often it runs, and what it does."""

    name: str
    every_seconds: int
    run: Callable[[Store], str]
    """Gives what it did, in words."""
