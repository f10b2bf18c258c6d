"""Opens the store that the settings name."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from bullpen.core.clock import Clock
from bullpen.core.errors import BadSetting, BullpenError
from bullpen.core.ids import Ids
from bullpen.core.settings import Settings
from bullpen.core.store import schema
from bullpen.core.store.base import Store
from bullpen.core.store.sqlite import SqliteStore


def open_store(
    settings: Settings, *, clock: Clock | None = None, ids: Ids | None = None, check: bool = True
) -> Store:
    """The store; with `check`, only if its schema is the one that this version needs."""
    try:
        url = make_url(settings.url)
    except (ArgumentError, ValueError) as error:
        raise BadSetting("database_url is not a URL", hint=str(error)) from error
    store: Store
    match url.get_backend_name():
        case "sqlite" if url.database and url.database != ":memory:":
            path = Path(url.database)
            if path.parent == settings.home:
                settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
            store = SqliteStore(path, settings, clock, ids)
        case "postgresql":
            # Its driver takes long to import, and most installations do without.
            from bullpen.core.store.postgres import PostgresStore

            store = PostgresStore(settings.url, settings, clock, ids)
        case other:
            raise BadSetting(
                f"database_url names {other!r}",
                hint="Use sqlite:///FILE or postgresql://USER@HOST/DATABASE.",
            )
    if check:
        try:
            schema.check(store)
        except BullpenError:
            store.close()
            raise
    return store
