"""restore: a new home made from a backup. It is held, for a restore is a journey through time.

What it says and does may have been said and done since the backup was made: so nothing goes out
and nothing comes due in it before its owner lets it go.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Connection, inspect
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from bullpen.core.backup import rows
from bullpen.core.backup.archive import opened
from bullpen.core.backup.disk import (
    DIRECTORY_MODE,
    MODE,
    PROGRAM_MODE,
    create,
    failing,
    sync,
    sync_tree,
    unfinished,
)
from bullpen.core.backup.forget import Forgotten, forget_the_living
from bullpen.core.backup.manifest import DATABASE, SETTINGS, WORKSPACE, Manifest, read_manifest
from bullpen.core.backup.moved import Move, move_paths, moves
from bullpen.core.backup.progress import Tell, tell_nobody
from bullpen.core.backup.restored_settings import restore_settings
from bullpen.core.backup.verify import verified
from bullpen.core.clock import SECOND
from bullpen.core.errors import BackupFailed, BadSetting, InTheWay, SchemaTooNew
from bullpen.core.outbox.hold import begin_hold
from bullpen.core.settings import Settings
from bullpen.core.store import migrate, schema
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from bullpen.core.store.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Restored:
    """A home that is there, and held."""

    home: Path
    manifest: Manifest
    forgotten: Forgotten
    settings_good: bool
    """False if settings.toml could not be read: then it counts no more."""


@dataclass(frozen=True, slots=True)
class _Life:
    """What is done to the data in their new place."""

    reason: str
    moved: list[Move]
    keep_keys: bool

    def begin(self, tx: Transaction) -> Forgotten:
        begin_hold(tx, self.reason)
        forgotten = forget_the_living(tx, self.reason, keep_keys=self.keep_keys)
        move_paths(tx, self.moved)
        return forgotten


def restore(
    backup: Path,
    home: Path,
    *,
    database_url: str = "",
    keep_keys: bool = False,
    tell: Tell = tell_nobody,
) -> Restored:
    """Make a new home of a backup, and on a server fill the empty database that is named."""
    home = home.expanduser().absolute()
    _check_url(database_url)
    _check_free(home)
    with failing("the home cannot be made"):
        home.parent.mkdir(parents=True, exist_ok=True)
        with unfinished(home.parent) as here, opened(backup, here) as contents:
            revision = read_manifest(contents).revision
            if revision not in schema.KNOWN:
                raise SchemaTooNew(
                    f"the backup is of revision {revision}, which this Bullpen does not know"
                )
            manifest = verified(contents, tell)
            new = here / "home"
            new.mkdir(DIRECTORY_MODE)
            _lay_out(contents, new, manifest, tell)
            given = {"database_url": database_url}
            if manifest.with_workspace:
                given[WORKSPACE] = str(home / WORKSPACE)
            good = restore_settings(contents, new, given)
            life = _Life(
                f"restored from the backup of {_moment(manifest.made_at)}",
                moves(manifest, home),
                keep_keys,
            )
            if database_url:
                forgotten = _to_server(contents, database_url, new, manifest, life, tell)
            else:
                forgotten = _to_file(contents, new, life, tell)
            sync_tree(new)
            new.rename(home)
            sync(home.parent)
    return Restored(home, manifest, forgotten, good)


def _lay_out(contents: Path, new: Path, manifest: Manifest, tell: Tell) -> None:
    """Every file where it was; the database and the settings have ways of their own."""
    for each in manifest.directories:
        (new / each).mkdir(DIRECTORY_MODE, parents=True, exist_ok=True)
    for place, entry in enumerate(manifest.files):
        if entry.path not in (DATABASE, SETTINGS):
            tell("files", place, len(manifest.files))
            _copy(contents / entry.path, new / entry.path, entry.executable)
    for link in manifest.links:
        (new / link.path).symlink_to(link.target)


def _copy(source: Path, target: Path, executable: bool = False) -> None:
    with source.open("rb") as file, create(target, PROGRAM_MODE if executable else MODE) as copy:
        shutil.copyfileobj(file, copy)
        copy.flush()
        os.fsync(copy.fileno())
    found = source.stat()
    os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))


def _to_file(contents: Path, new: Path, life: _Life, tell: Tell) -> Forgotten:
    tell("the database", 0, 0)
    _copy(contents / DATABASE, new / DATABASE)
    with closing(open_store(Settings(home=new), check=False)) as store:
        migrate.upgrade(store)
        with store.write() as tx:
            forgotten = life.begin(tx)
    (new / f"{DATABASE}-turn").unlink(missing_ok=True)
    sync(new / DATABASE)
    return forgotten


def _to_server(
    contents: Path, url: str, new: Path, manifest: Manifest, life: _Life, tell: Tell
) -> Forgotten:
    """All in one transaction: a database that is half filled never was."""
    with (
        closing(open_store(Settings(home=new, database_url=url), check=False)) as store,
        closing(sqlite3.connect(contents / DATABASE)) as source,
        _server(store) as connection,
    ):
        if inspect(connection).get_table_names():
            raise InTheWay(
                "the database that was given is not empty", hint="Give an empty one by its URL."
            )
        migrate.upgrade_in(connection, manifest.revision)
        driver = connection.connection.driver_connection
        assert driver is not None
        rows.to_postgres(source, driver, tell)
        migrate.upgrade_in(connection)
        with store.join(connection) as tx:
            return life.begin(tx)


@contextmanager
def _server(store: Store) -> Iterator[Connection]:
    import psycopg
    from sqlalchemy.exc import DBAPIError

    from bullpen.core.store.postgres import translate

    try:
        with store.engine.begin() as connection:
            yield connection
    except (psycopg.Error, DBAPIError) as error:
        cause = error if isinstance(error, psycopg.Error) else error.orig
        told = None if cause is None else translate(cause)
        raise told or BackupFailed(f"the database cannot be filled: {cause}") from error


def _check_url(url: str) -> None:
    if not url:
        return
    try:
        kind = make_url(url).get_backend_name()
    except (ArgumentError, ValueError) as error:
        raise BadSetting("the database's URL is none", hint=str(error)) from error
    if kind != "postgresql":
        raise BadSetting(
            f"a backup is restored to the home's own file or to a server, not to {kind!r}",
            hint="Leave --database-url out, or give postgresql://USER@HOST/DATABASE.",
        )


def _check_free(home: Path) -> None:
    if home.is_symlink() or (home.exists() and not home.is_dir()):
        raise InTheWay(f"{home} is no directory", hint="Give a new one.")
    if home.is_dir() and next(home.iterdir(), None) is not None:
        raise InTheWay(
            f"{home} is there already, and not empty; nothing is restored in place",
            hint="Give a new directory, and look what is in it before you let it go.",
        )


def _moment(made_at: int) -> str:
    return f"{datetime.fromtimestamp(made_at / SECOND, UTC):%Y-%m-%d %H:%M} UTC"
