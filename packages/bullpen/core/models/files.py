"""stored_files and file_uses: the uploader of a file, and the conversations that use it."""

from __future__ import annotations

from sqlalchemy import BigInteger, Index, Text

from bullpen.core.models.base import Millis, column, nullable_column, table

STORED_FILES = table(
    "stored_files",
    lambda: [
        column("name", Text, primary_key=True),
        column("bytes", BigInteger),
        # The API key that uploaded it.
        column("key_id", Text),
        column("created_at", Millis),
        Index("ix_stored_files_key", "key_id"),
    ],
)
"""A file that was uploaded with an API key; files of the owner have no row."""

FILE_USES = table(
    "file_uses",
    lambda: [
        column("name", Text, primary_key=True),
        column("conversation_id", Text, primary_key=True),
        column("agent", Text, primary_key=True),
        # The channel and the person or chat; NULL without a person.
        nullable_column("place", Text),
        column("created_at", Millis),
    ],
    sqlite_with_rowid=False,
)
"""A conversation and an agent that sent or received a stored file."""
