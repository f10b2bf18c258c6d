"""How soon an API stops that is told to."""

from __future__ import annotations

from collections.abc import Callable

from bullpen.api.server import GRACE_SECONDS

ATTEMPTS = 3
"""How soon is the machine's affair as well, which does other things: of several, the best."""


def stopped_at_once(attempt: Callable[[], float]) -> bool:
    """Whether it stops before what is under way would be ended by force; the attempt says when."""
    return any(attempt() < GRACE_SECONDS / 2 for _ in range(ATTEMPTS))
