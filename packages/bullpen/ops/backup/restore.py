"""Restore: create a new home from a backup, on hold until its owner releases it.

Responses in the backup may have been delivered since, and schedules may have fired. So a restored
home delivers nothing and starts no schedule until then.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import tomlkit
from sqlalchemy import (
    BindParameter,
    Connection,
    Table,
    Text,
    bindparam,
    delete,
    func,
    inspect,
    select,
    update,
)
from tomlkit.exceptions import TOMLKitError

from bullpen.core.access.keys import list_keys, revoke_key
from bullpen.core.clock import SECOND
from bullpen.core.errors import BackupFailed, BadSetting, InTheWay
from bullpen.core.files import (
    PRIVATE_DIRECTORY_MODE,
    PRIVATE_FILE_MODE,
    create_file,
    fsync_path,
    replace_file,
)
from bullpen.core.maintenance.jobs import release_job_leases
from bullpen.core.models import AGENTS, API_KEYS, LANES, SYSTEM_AGENTS, WORKERS, whole_schema
from bullpen.core.outbox.hold import begin_hold
from bullpen.core.outbox.manage import release_responses
from bullpen.core.queue.fail import release
from bullpen.core.settings import Settings
from bullpen.core.store import migrate, open
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.ops.backup import database_copy
from bullpen.ops.backup.contents import (
    DATABASE_FILE,
    FILES,
    SETTINGS_FILE,
    WORKSPACE,
    Manifest,
    ProgressCallback,
    ignore_progress,
    open_backup,
    read_manifest,
)
from bullpen.ops.backup.disk import (
    fsync_tree,
    staging_directory,
    translate_disk_errors,
)
from bullpen.ops.backup.verify import read_verified_manifest

EXECUTABLE_MODE = 0o700
INVALID_SETTINGS_FILE = "settings.toml.bak"
UTF8_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class ResetCounts:
    """The amounts of runtime state that were reset."""

    claims: int
    """Claims whose messages are pending again."""
    deliveries: int
    keys: int
    """Keys and browser logins that were revoked."""


@dataclass(frozen=True, slots=True)
class PathRewrite:
    """A directory prefix, and its replacement."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class RestoredHome:
    """A home that was restored, and is on hold."""

    home: Path
    manifest: Manifest
    forgotten: ResetCounts
    settings_valid: bool
    """False if settings.toml of the backup was invalid, and was renamed."""


@dataclass(frozen=True, slots=True)
class _RuntimeReset:
    """The changes to the restored data."""

    reason: str
    moved: list[PathRewrite]
    keep_keys: bool

    def apply(self, tx: Transaction) -> ResetCounts:
        begin_hold(tx, self.reason)
        forgotten = reset_runtime_state(tx, self.reason, keep_keys=self.keep_keys)
        rewrite_paths(tx, self.moved)
        return forgotten


def restore(
    backup: Path,
    home: Path,
    *,
    database_url: str = "",
    keep_keys: bool = False,
    tell: ProgressCallback = ignore_progress,
) -> RestoredHome:
    """Create a new home from a backup; with a URL, in that empty PostgreSQL database."""
    home = home.expanduser().absolute()
    _check_url(database_url)
    _check_empty(home)
    with translate_disk_errors("cannot write the new home"):
        home.parent.mkdir(parents=True, exist_ok=True)
        with staging_directory(home.parent) as here, open_backup(backup, here) as contents:
            open.check_revision(read_manifest(contents).revision, "the backup has")
            manifest = read_verified_manifest(contents, tell)
            new = here / "home"
            new.mkdir(PRIVATE_DIRECTORY_MODE)
            _copy_files(contents, new, manifest, tell)
            given = {"database_url": database_url}
            if manifest.with_workspace:
                given[WORKSPACE] = str(home / WORKSPACE)
            good = restore_settings(contents, new, given)
            reset = _RuntimeReset(
                f"restored from the backup of {_moment(manifest.made_at)}",
                path_rewrites(manifest, home),
                keep_keys,
            )
            if database_url:
                forgotten = _restore_postgres(contents, database_url, new, manifest, reset, tell)
            else:
                forgotten = _restore_sqlite(contents, new, reset, tell)
            fsync_tree(new)
            new.rename(home)
            fsync_path(home.parent)
    return RestoredHome(home, manifest, forgotten, good)


def _copy_files(contents: Path, new: Path, manifest: Manifest, tell: ProgressCallback) -> None:
    """Copy every file except the database and the settings, and create the links."""
    for each in manifest.directories:
        (new / each).mkdir(PRIVATE_DIRECTORY_MODE, parents=True, exist_ok=True)
    for place, entry in enumerate(manifest.files):
        if entry.path not in (DATABASE_FILE, SETTINGS_FILE):
            tell("copying files", place, len(manifest.files))
            _copy(contents / entry.path, new / entry.path, entry.executable)
    for link in manifest.links:
        (new / link.path).symlink_to(link.target)


def _copy(source: Path, target: Path, executable: bool = False) -> None:
    with (
        source.open("rb") as file,
        create_file(target, EXECUTABLE_MODE if executable else PRIVATE_FILE_MODE) as copy,
    ):
        shutil.copyfileobj(file, copy)
    found = source.stat()
    os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))


def _restore_sqlite(
    contents: Path, new: Path, reset: _RuntimeReset, tell: ProgressCallback
) -> ResetCounts:
    tell("copying the database", 0, 0)
    _copy(contents / DATABASE_FILE, new / DATABASE_FILE)
    with closing(open_store(Settings(home=new), check=False)) as store:
        migrate.upgrade(store)
        with store.write() as tx:
            forgotten = reset.apply(tx)
    (new / f"{DATABASE_FILE}-turn").unlink(missing_ok=True)
    fsync_path(new / DATABASE_FILE)
    return forgotten


def _restore_postgres(
    contents: Path,
    url: str,
    new: Path,
    manifest: Manifest,
    reset: _RuntimeReset,
    tell: ProgressCallback,
) -> ResetCounts:
    """Fill the database in one transaction, so that it is never incomplete."""
    with (
        closing(open_store(Settings(home=new, database_url=url), check=False)) as store,
        closing(sqlite3.connect(contents / DATABASE_FILE)) as source,
        _postgres_connection(store) as connection,
    ):
        if inspect(connection).get_table_names():
            raise InTheWay(
                "the database of --database-url is not empty", hint="Create an empty database."
            )
        migrate.upgrade_connection(connection, manifest.revision)
        driver = connection.connection.driver_connection
        assert driver is not None
        database_copy.copy_rows_to_postgres(source, driver, tell)
        migrate.upgrade_connection(connection)
        with store.join(connection) as tx:
            return reset.apply(tx)


@contextmanager
def _postgres_connection(store: Store) -> Iterator[Connection]:
    import psycopg
    from sqlalchemy.exc import DBAPIError

    from bullpen.core.store.postgres_errors import translate_error

    store.revision()  # an error of the connection is reported with its cause
    try:
        with store.engine.begin() as connection:
            yield connection
    except (psycopg.Error, DBAPIError) as error:
        cause = error if isinstance(error, psycopg.Error) else error.orig
        translated = None if cause is None else translate_error(cause)
        raise translated or BackupFailed(f"cannot fill the database: {cause}") from error


def _check_url(url: str) -> None:
    if not url:
        return
    if open.parse_database_url(url).get_backend_name() != "postgresql":
        raise BadSetting(
            "--database-url is not a PostgreSQL database",
            hint="Omit it to restore to a file, or give postgresql://USER:PASSWORD@HOST/DATABASE.",
        )


def _check_empty(home: Path) -> None:
    if home.is_symlink() or (home.exists() and not home.is_dir()):
        raise InTheWay(f"{home} is not a directory", hint="Give a new directory.")
    if home.is_dir() and next(home.iterdir(), None) is not None:
        raise InTheWay(
            f"directory {home} is not empty",
            hint="Give a new directory: a backup is never restored over existing data.",
        )


def _moment(made_at: int) -> str:
    return f"{datetime.fromtimestamp(made_at / SECOND, UTC):%Y-%m-%d %H:%M} UTC"


CLAIMS: Statement[tuple[str]] = Statement(
    lambda: (
        select(LANES.c.claim_token).where(LANES.c.claim_token.is_not(None)).order_by(LANES.c.agent)
    )
)
JOB_HOLDERS: Statement[tuple[str]] = Statement(
    lambda: select(SYSTEM_AGENTS.c.holder).where(SYSTEM_AGENTS.c.holder.is_not(None)).distinct()
)
DELETE_WORKERS: Statement[None] = Statement(lambda: delete(WORKERS))
# Unused login links are not in the list of keys; they expire within minutes.
REVOKE_LOGIN_LINKS: Statement[None] = Statement(
    lambda: (
        update(API_KEYS).where(API_KEYS.c.revoked_at.is_(None)).values(revoked_at=bindparam("now"))
    )
)


def reset_runtime_state(tx: Transaction, reason: str, *, keep_keys: bool) -> ResetCounts:
    """End every claim, delivery and lease, unregister all workers, and revoke the keys."""
    claims = [token for (token,) in tx.all(CLAIMS, {})]
    for token in claims:
        release(tx, token, reason)
    deliveries = release_responses(tx, reason)
    for (holder,) in tx.all(JOB_HOLDERS, {}):
        release_job_leases(tx, holder)
    tx.write(DELETE_WORKERS, {})
    return ResetCounts(len(claims), deliveries, 0 if keep_keys else _revoke_keys(tx))


def _revoke_keys(tx: Transaction) -> int:
    """Revoke every key, because one that was revoked after the backup would be valid again."""
    keys = [each for each in list_keys(tx) if each.valid(tx.now)]
    for key in keys:
        revoke_key(tx, key.id)
    tx.write(REVOKE_LOGIN_LINKS, {"now": tx.now})
    return len(keys)


def _old() -> BindParameter[str]:
    return bindparam("old", type_=Text)


REWRITE_AGENT_DIRECTORY: Statement[None] = Statement(
    lambda: (
        update(AGENTS)
        .where(func.substr(AGENTS.c.directory, 1, func.length(_old())) == _old())
        .values(directory=func.replace(AGENTS.c.directory, _old(), bindparam("new")))
    )
)


def path_rewrites(manifest: Manifest, home: Path) -> list[PathRewrite]:
    """Return the replacements for the directories of the old home in rows."""
    found = [PathRewrite(f"{old}/{FILES}/", f"{home}/{FILES}/") for old in manifest.homes]
    if manifest.with_workspace:
        found += [PathRewrite(f"{old}/", f"{home}/{WORKSPACE}/") for old in manifest.workspaces]
    return found


def rewrite_paths(tx: Transaction, moved: list[PathRewrite]) -> None:
    """Replace the directories in rows; message texts are unchanged."""
    for table in whole_schema().tables.values():
        if "files" in table.c:
            for each in moved:
                tx.write(
                    _rewrite_file_lists(table),
                    {"old": _json_prefix(each.old), "new": _json_prefix(each.new)},
                )
    for each in moved:
        tx.write(REWRITE_AGENT_DIRECTORY, {"old": each.old, "new": each.new})


def _rewrite_file_lists(table: Table) -> Statement[None]:
    files = table.c.files
    replaced = func.replace(files, bindparam("old"), bindparam("new"))
    return Statement(lambda: update(table).where(files.is_not(None)).values(files=replaced))


def _json_prefix(path: str) -> str:
    """Return the path as the beginning of a string in a JSON list."""
    return json.dumps(path)[:-1]


def restore_settings(backup: Path, home: Path, given: dict[str, str]) -> bool:
    """Write the settings with these values, without the empty ones; false if the file is invalid.

    The old home's database URL is never kept, because that database may be in use. An invalid file
    is renamed.
    """
    try:
        data = (backup / SETTINGS_FILE).read_bytes().removeprefix(UTF8_BOM)
    except FileNotFoundError:
        data = b""
    try:
        document, good = tomlkit.parse(data.decode()), True
    except (TOMLKitError, UnicodeDecodeError):
        replace_file(home / INVALID_SETTINGS_FILE, data)
        document, good = tomlkit.document(), False
    for name, value in given.items():
        document.pop(name, None)
        if value:
            document[name] = value
    text = tomlkit.dumps(document).encode()
    if text:
        replace_file(home / SETTINGS_FILE, text)
    return good
