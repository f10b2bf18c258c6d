"""What long work tells of itself while it goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

ProgressCallback: TypeAlias = Callable[[str, int, int], None]
"""What is being done, how much of it is done, and how much there is; 0 is not known."""


def ignore_progress(what: str, done: int, total: int) -> None:
    """For whoever does not want to know."""
