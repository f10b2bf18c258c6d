"""Waits for what may never come, and no longer than one may."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def run_with_timeout(seconds: float, function: Callable[[], Result]) -> Result | None:
    """What it gives; None if it does not end in this time. It raises nothing."""
    found: list[Result] = []
    # A daemon, for nobody can end a thread that hangs.
    work = threading.Thread(target=lambda: found.append(function()), daemon=True)
    work.start()
    work.join(seconds)
    return found[0] if found else None
