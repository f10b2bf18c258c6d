"""Opens the store that the settings name."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from bullpen.core.clock import Clock
from bullpen.core.errors import BullpenError, SchemaTooOld
from bullpen.core.ids import Ids
from bullpen.core.settings import Settings
from bullpen.core.store import schema
from bullpen.core.store.base import Store
from bullpen.core.store.sqlite import SqliteStore
from bullpen.core.store.url import parse_database_url


def open_store(
    settings: Settings, *, clock: Clock | None = None, ids: Ids | None = None, check: bool = True
) -> Store:
    """The store; with `check`, only if its schema is the one that this version needs."""
    url = parse_database_url(settings.url)
    store: Store
    if url.get_backend_name() == "postgresql":
        # Its driver takes long to import, and most installations do without.
        from bullpen.core.store.postgres import PostgresStore

        store = PostgresStore(settings.url, settings, clock, ids)
    else:
        path = Path(url.database or "")
        if check and _file_is_missing(path):  # SQLite would make an empty one by looking at it
            raise SchemaTooOld("the database is empty")
        if path.parent == settings.home:
            settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
            _make_private(path)
        store = SqliteStore(path, settings, clock, ids)
    if check:
        try:
            schema.check_schema(store)
        except BullpenError:
            store.close()
            raise
    return store


def _file_is_missing(path: Path) -> bool:
    try:
        return path.parent.is_dir() and not path.exists()
    except OSError:  # SQLite will say what hinders it, in words that are known
        return False


def _make_private(path: Path) -> None:
    """SQLite would let others read what is said; its files beside take their rights from this."""
    with suppress(OSError):  # what hinders it SQLite will say, in words that are known
        path.touch(mode=0o600, exist_ok=True)
