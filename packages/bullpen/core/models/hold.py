"""holds: what waits until the owner lets it go. No row, no hold."""

from __future__ import annotations

from sqlalchemy import Table, Text

from bullpen.core.models.base import METADATA, Millis, column

HOLDS = Table(
    "holds",
    METADATA,
    column("name", Text, primary_key=True),
    # Why, in words for a person.
    column("reason", Text),
    column("held_at", Millis),
)
"""Something of the whole store that does not go on by itself."""
