"""Upgrades a database to this version's schema, and compares them. The only user of Alembic."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from bullpen.core.errors import StoreError
from bullpen.core.models import whole_schema
from bullpen.core.store import open
from bullpen.core.store.base import Store
from bullpen.core.store.sqlite import SqliteStore, translate_error

log = logging.getLogger(__name__)

HERE = Path(__file__).resolve()
BESIDE = HERE.parents[2] / "migrations"
SCRIPTS = BESIDE if BESIDE.is_dir() else HERE.parents[4] / "migrations"
"""Alembic's scripts: inside the package in a wheel, at the top in a checkout."""


def upgrade(store: Store, revision: str = "head") -> None:
    """Migrate to this revision; data are kept. A database from a newer version is refused."""
    revision_before = store.revision()
    if revision_before is not None:
        open.check_revision(revision_before, "the database is at")
    with _translated_errors(store), store.engine.begin() as connection:
        upgrade_connection(connection, revision)
    if isinstance(store, SqliteStore):
        try:
            store.enable_incremental_vacuum()
        except StoreError as error:
            # The database is upgraded and works; the next upgrade tries again.
            log.warning("the file cannot shrink yet: %s (%s)", error, error.hint)


def upgrade_connection(connection: Connection, revision: str = "head") -> None:
    """Migrate to this revision in the caller's own transaction."""
    command.upgrade(_config(connection), revision)


def downgrade(store: Store, revision: str) -> None:
    """Migrate back to this revision."""
    with store.engine.begin() as connection:
        command.downgrade(_config(connection), revision)


def differences(store: Store) -> list[str]:
    """How the database differs from the models; empty when it does not."""
    with store.engine.begin() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "include_object": _include_object}
        )
        return [str(each) for each in compare_metadata(context, whole_schema())]


@contextmanager
def _translated_errors(store: Store) -> Iterator[None]:
    """Translate SQLite's errors: Alembic uses a connection that does not do so."""
    try:
        yield
    except DBAPIError as error:
        if isinstance(store, SqliteStore) and isinstance(error.orig, sqlite3.Error):
            raise translate_error(error.orig, store.path) or error from error
        raise


def _include_object(
    item: object, name: str | None, kind: str, reflected: bool, other: object
) -> bool:
    # A caller may keep other tables beside Bullpen's.
    return kind != "table" or not reflected or name in whole_schema().tables


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    config.attributes["connection"] = connection
    return config
