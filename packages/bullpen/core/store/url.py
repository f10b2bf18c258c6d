"""The database's address, if it is one that can be opened."""

from __future__ import annotations

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from bullpen.core.errors import BadSetting
from bullpen.core.settings import Settings


def parse_database_url(address: str) -> URL:
    """The address in its parts: a file of SQLite, or a server of PostgreSQL."""
    try:
        url = make_url(address)
    except (ArgumentError, ValueError) as error:
        raise BadSetting("database_url is not a URL", hint=str(error)) from error
    match url.get_backend_name():
        case "sqlite" if url.database and url.database != ":memory:":
            return url
        case "postgresql":
            return url
        case other:
            raise BadSetting(
                f"database_url names {other!r}",
                hint="Use sqlite:///FILE or postgresql://USER@HOST/DATABASE.",
            )


def has_valid_database_url(settings: Settings) -> bool:
    """Whether the settings name a database that could be opened; if not, no other is meant."""
    try:
        parse_database_url(settings.url)
    except BadSetting:
        return False
    return True
