"""Where the database's file is, asked without opening it: that would make it."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from bullpen.core.settings import Settings


def database_file(settings: Settings) -> Path | None:
    """The file of SQLite; None for a server, and for an address that nobody can read."""
    try:
        url = make_url(settings.url)
    except (ArgumentError, ValueError):
        return None
    if url.get_backend_name() != "sqlite" or not url.database or url.database == ":memory:":
        return None
    return Path(url.database)
