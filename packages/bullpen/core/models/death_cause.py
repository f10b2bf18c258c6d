"""death_causes: what messages died of, one row for errors that differ in numbers and ids only."""

from __future__ import annotations

from sqlalchemy import Integer, Text

from bullpen.core.models.base import Millis, column, nullable_column, table

DEATH_CAUSES = table(
    "death_causes",
    lambda: [
        column("fingerprint", Text, primary_key=True),
        column("kind", Text),
        # The newest of them, as an example.
        column("error", Text),
        column("deaths", Integer),
        column("first_at", Millis),
        column("last_at", Millis),
        nullable_column("told_at", Millis),
    ],
)
"""One cause, how many it killed, and when the owner was told of it last."""
