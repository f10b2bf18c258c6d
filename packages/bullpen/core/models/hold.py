"""holds: what waits until the owner lets it go. No row, no hold."""

from __future__ import annotations

from sqlalchemy import Text

from bullpen.core.models.base import Millis, column, table

HOLDS = table(
    "holds",
    lambda: [
        column("name", Text, primary_key=True),
        # Why, in words for a person.
        column("reason", Text),
        column("held_at", Millis),
    ],
)
"""Something of the whole store that does not go on by itself."""
