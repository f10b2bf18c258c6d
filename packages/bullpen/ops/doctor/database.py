"""Checks of the database and its backups."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import psutil
from sqlalchemy import select, text

from bullpen.core.clock import DAY, SECOND
from bullpen.core.errors import BullpenError, StoreBusy, StoreCorrupt, StoreMissing
from bullpen.core.models import AGENTS
from bullpen.core.store import open
from bullpen.core.store.sqlite import SqliteStore, translate_error
from bullpen.core.store.statement import Statement
from bullpen.core.text import format_count
from bullpen.ops.backup.create import last_backup
from bullpen.ops.doctor.check import (
    PASSED,
    CheckState,
    Fix,
    Needs,
    Problem,
    Severity,
    Verdict,
    check,
    skipped,
)
from bullpen.ops.doctor.installation import Installation

STALE_AFTER_MS = 7 * DAY

FIRST_AGENT: Statement[tuple[int]] = Statement(
    lambda: select(AGENTS.c.created_at).order_by(AGENTS.c.created_at).limit(1)
)
BACKUP_COMMAND = "bullpen db backup"


@check("backup.none", Severity.WARNING, Needs.SCHEMA)
def no_backup(installation: Installation) -> Problem | Verdict:
    """There is no backup; a warning after the first week."""
    if last_backup(installation.settings) is not None:
        return PASSED
    with installation.store.read() as tx:
        first = tx.one(FIRST_AGENT, {})
    age = 0 if first is None else installation.now - first[0]
    return Problem(
        text="there is no backup" + ("" if age > STALE_AFTER_MS else " yet"),
        remedy=BACKUP_COMMAND,
        severity=None if age > STALE_AFTER_MS else Severity.INFO,
    )


@check("backup.stale", Severity.WARNING)
def backup_stale(installation: Installation) -> Problem | Verdict:
    """The last backup is over a week old."""
    last = last_backup(installation.settings)
    if last is None:
        return skipped("there is none")
    age = installation.now - last.made_at
    if age <= STALE_AFTER_MS:
        return PASSED
    return Problem(text=f"the last backup is {age // DAY} days old", remedy=BACKUP_COMMAND)


@check("backup.gone", Severity.INFO)
def backup_gone(installation: Installation) -> Problem | Verdict:
    """The last backup is no longer at its path."""
    last = last_backup(installation.settings)
    if last is None:
        return skipped("there is none")
    if last.there:
        return PASSED
    return Problem(
        text=f"the last backup is no longer at {last.path}",
        remedy=f"Connect its disk, or make another backup: {BACKUP_COMMAND}",
    )


BACKUP_CHECKS = (no_backup, backup_stale, backup_gone)


# A reader of SQLite's write-ahead log holds a shared lock on one of five bytes of the `-shm` file.
# The system's table of locks is read, because opening and closing the file itself would drop the
# locks of this process.

LOCK_TABLE = Path("/proc/locks")
READER_LOCK_BYTES = range(123, 128)
"""The bytes of the file on which readers hold their locks."""
SAMPLES = 8
SAMPLE_SECONDS = 0.1


def shared_lock_holders(table: str, shm: Path) -> set[tuple[int, int]]:
    """The process and the locked byte of each reader, from the table of locks."""
    found = shm.stat()
    place = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    readers = set()
    for line in table.splitlines():
        # 7: POSIX  ADVISORY  READ 4711 fe:00:1234 124 124
        fields = line.split()
        if "->" in fields or len(fields) < 8 or fields[1] != "POSIX" or fields[3] != "READ":
            continue
        first, last = fields[6], fields[7]
        if (
            fields[5] == place
            and first == last
            and first.isdigit()
            and int(first) in READER_LOCK_BYTES
        ):
            readers.add((int(fields[4]), int(first)))
    return readers


def long_readers(file: Path) -> list[int]:
    """The processes that held a read lock in every sample of nearly a second."""
    shm = file.with_name(f"{file.name}-shm")
    held: set[tuple[int, int]] | None = None
    for look in range(SAMPLES):
        if look:
            time.sleep(SAMPLE_SECONDS)
        try:
            seen = shared_lock_holders(LOCK_TABLE.read_text(), shm)
        except FileNotFoundError:  # no process has it open
            return []
        held = seen if held is None else held & seen
        if not held:
            return []
    return sorted({pid for pid, _ in held or () if pid != os.getpid()})


QUICK_SECONDS = 1.2
DEEP_SECONDS = 600.0
PROGRESS_STEPS = 10_000
"""SQLite's virtual machine steps between two looks at the clock."""
MAX_DAMAGES = 3
WAL_SIZE_FACTOR = 10
"""A log larger than this multiple of `wal_bytes` means that the checkpoint job cannot keep up."""
LONG_TRANSACTION_MS = 60 * SECOND
CHECKPOINT_WAIT_SECONDS = 5

OPEN_TRANSACTIONS: Statement[tuple[int, str, str, int]] = Statement(
    lambda: text(
        "SELECT pid, coalesce(application_name, ''), coalesce(state, ''),"
        " CAST(extract(epoch FROM clock_timestamp() - xact_start) * 1000 AS bigint)"
        " FROM pg_stat_activity WHERE datname = current_database()"
        " AND pid <> pg_backend_pid() AND xact_start IS NOT NULL ORDER BY xact_start LIMIT 20"
    )
)
CHECKSUMS = (
    "SELECT coalesce(checksum_failures, 0) FROM pg_stat_database WHERE datname = current_database()"
)


@check("db.missing", Severity.INFO)
def database_missing(installation: Installation) -> Problem | Verdict:
    """There is no database."""
    if not installation.database.missing:
        return PASSED
    if not installation.home.is_dir():
        return skipped("there is no home yet")
    if open.is_known_database(installation.settings):
        return Problem(
            text=f"the database was removed: {installation.database.file}",
            remedy=StoreMissing.hint,
            severity=Severity.CRITICAL,
        )
    had = installation.settings.token_file.exists() or installation.settings.logs.is_dir()
    return Problem(
        text=f"there is no database at {installation.database.file}"
        + (", though Bullpen ran here before" if had else " yet"),
        remedy="bullpen db restore, if it was lost; bullpen up creates a new one"
        if had
        else "bullpen up",
        severity=Severity.WARNING if had else Severity.INFO,
    )


@check("db.unreachable", Severity.CRITICAL)
def unreachable(installation: Installation) -> Problem | Verdict:
    """Cannot connect to the database, or the file is not a database."""
    error = installation.database.error
    if error is None:
        return PASSED
    return Problem(text=str(error), remedy=error.hint or "Check the database and its disk.")


@check("db.schema", Severity.CRITICAL, Needs.DATABASE)
def schema_revision(installation: Installation) -> Problem | Verdict:
    """The database has the schema of another version of Bullpen."""
    found = installation.database.revision
    if found is None and open.is_known_database(installation.settings):
        return Problem(text="the database is now empty", remedy=StoreMissing.hint)
    if installation.database.current:
        return Verdict(text=f"revision {open.HEAD_REVISION}")
    try:
        open.check_schema(installation.store)
    except BullpenError as error:
        known = found is None or found in open.KNOWN_REVISIONS
        return Problem(
            text=str(error), remedy=error.hint, fix=_upgrade(installation) if known else None
        )
    return PASSED


def _upgrade(installation: Installation) -> Fix:
    def apply() -> str | None:
        from bullpen.ops.backup.create import upgrade_database

        backup = upgrade_database(installation.store).backup
        return None if backup is None else f"backup of the database before the upgrade: {backup}"

    return Fix(
        steps=("bullpen db upgrade, after a backup to the home's backups directory",), apply=apply
    )


@check("db.integrity", Severity.CRITICAL, Needs.DATABASE)
def integrity(installation: Installation) -> Problem | Verdict:
    """The database is damaged (quick check, one second)."""
    store = installation.store
    if isinstance(store, SqliteStore):
        return _check_sqlite(store, "quick_check", QUICK_SECONDS)
    with store.read() as tx:
        failures = tx.fetch(CHECKSUMS)
    if failures is not None and int(str(failures[0])) > 0:
        return Problem(
            text=f"PostgreSQL found {format_count(int(str(failures[0])), 'damaged page')} in this"
            " database",
            remedy="Check the server's log and disk; restore a backup.",
        )
    return PASSED


@check("db.integrity_full", Severity.CRITICAL, Needs.DATABASE, deep=True, seconds=DEEP_SECONDS)
def integrity_full(installation: Installation) -> Problem | Verdict:
    """The database is damaged (full check of pages, indexes and rows)."""
    store = installation.store
    if not isinstance(store, SqliteStore):
        return skipped("on PostgreSQL use pg_amcheck")
    return _check_sqlite(store, "integrity_check", DEEP_SECONDS - 1)


@check("db.drift", Severity.WARNING, Needs.SCHEMA, deep=True, seconds=60)
def drift(installation: Installation) -> Problem | Verdict:
    """The tables differ from this version's schema."""
    from bullpen.core.store import migrate  # only here: Alembic takes long to load

    found = migrate.differences(installation.store)
    if not found:
        return PASSED
    return Problem(
        text=f"{format_count(len(found), 'difference')} from the schema, for example"
        f" {found[0][:200]}",
        remedy="bullpen db check",
    )


def find_damage(store: SqliteStore, what: str, seconds: float) -> str | None:
    """The damage that SQLite's check finds; empty without damage, None after the time limit."""
    deadline = time.monotonic() + seconds
    with closing(store.connect(query_only=True)) as connection:
        connection.set_progress_handler(lambda: time.monotonic() > deadline, PROGRESS_STEPS)
        try:
            said = [str(row[0]) for row in connection.execute(f"PRAGMA {what}({MAX_DAMAGES})")]
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_INTERRUPT:
                return None
            told = translate_error(error, store.path)
            if not isinstance(told, StoreCorrupt):
                raise told or error from error
            said = [str(told)]
    return "" if said == ["ok"] else "; ".join(said)[:300]


RESTORE = "bullpen down; move the file aside; restore a backup: bullpen db restore"


def _check_sqlite(store: SqliteStore, what: str, seconds: float) -> Problem | Verdict:
    damage = find_damage(store, what, seconds)
    if damage is None:
        return Verdict(CheckState.SKIPPED, "the database is large: use bullpen doctor --deep")
    if not damage:
        return PASSED
    return Problem(text=f"the database is damaged: {damage}", remedy=RESTORE)


@check("db.wal_size", Severity.WARNING, Needs.DATABASE)
def wal_size(installation: Installation) -> Problem | Verdict:
    """SQLite's write-ahead log is far over its limit."""
    store = installation.store
    if not isinstance(store, SqliteStore):
        return skipped("the database is on PostgreSQL")
    log = Path(f"{store.path}-wal")
    size = log.stat().st_size if log.exists() else 0
    if size <= WAL_SIZE_FACTOR * installation.settings.wal_bytes:
        return PASSED
    return Problem(
        text=f"the write-ahead log has {size >> 20} MiB: there are no checkpoints,"
        " or a reader blocks them (db.oldest_reader)",
        remedy="bullpen up starts the scheduler, which makes checkpoints; or: bullpen doctor --fix",
        fix=Fix(
            steps=(f"sqlite3 {store.path} 'PRAGMA wal_checkpoint(TRUNCATE)'",),
            apply=lambda: _checkpoint(store),
        ),
    )


def _checkpoint(store: SqliteStore) -> None:
    with closing(store.connect()) as connection:
        connection.execute(f"PRAGMA busy_timeout = {CHECKPOINT_WAIT_SECONDS * SECOND}")
        busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy:
        raise StoreBusy("a reader blocks the checkpoint", hint="See db.oldest_reader.")


@check("db.oldest_reader", Severity.WARNING, Needs.DATABASE)
def oldest_reader(installation: Installation) -> Problem | Verdict:
    """A process holds a transaction open, so that the write-ahead log grows."""
    store = installation.store
    if not isinstance(store, SqliteStore):
        return _check_open_transactions(installation)
    if not LOCK_TABLE.exists():
        return skipped("this system does not list the holders of locks")
    found = long_readers(store.path)
    if not found:
        return PASSED
    return Problem(
        text=f"transaction held open by {', '.join(map(_process_name, found))}; "
        "until it ends, the write-ahead log grows",
        remedy="Wait until the transaction ends, or end the process.",
    )


def _process_name(pid: int) -> str:
    try:
        return f"{psutil.Process(pid).name()} (process {pid})"
    except (psutil.Error, ValueError):
        return "an unknown process"


def _check_open_transactions(installation: Installation) -> Problem | Verdict:
    with installation.store.read() as tx:
        rows = tx.all(OPEN_TRANSACTIONS, {})
    old = [row for row in rows if row[3] > LONG_TRANSACTION_MS]
    if not old:
        return PASSED
    pid, name, state, age = old[0]
    return Problem(
        text=f"{format_count(len(old), 'transaction')} open for over a minute, the oldest for"
        f" {age // SECOND} s: {name or 'unknown client'} (server process {pid}, {state})",
        remedy=f"Wait until it ends, or run in psql: SELECT pg_terminate_backend({pid})",
    )


DATABASE_CHECKS = (
    database_missing,
    unreachable,
    schema_revision,
    integrity,
    integrity_full,
    drift,
    wal_size,
    oldest_reader,
)
