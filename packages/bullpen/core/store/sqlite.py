"""SQLite: one fair writer, readers with a snapshot, wake-ups after the commit."""

from __future__ import annotations

import fcntl
import os
import random
import shutil
import sqlite3
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import QueuePool

from bullpen.core.clock import Clock
from bullpen.core.errors import (
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreMissing,
    StoreReadOnly,
    StoreUnavailable,
)
from bullpen.core.ids import Ids
from bullpen.core.settings import Durability, Settings
from bullpen.core.store.base import SELECT_REVISION, Store
from bullpen.core.store.transaction import Transaction
from bullpen.core.wake.sqlite import CommitNotifier, DatagramListener, Notifier

# Write fairness: of several waiting processes, one that has waited for long writes first.
#
# SQLite gives its lock to the process that asks at the right moment, so another one may wait for
# long. This lock is advisory: if it fails, all processes can still write.

RETRY_DELAY_SECONDS = (0.0002, 0.001)
PRIORITY_AFTER_SECONDS = 0.01
"""With a shorter time the processes would keep yielding, and the throughput would halve."""


class WriteFairness:
    """Locks on a file beside the database; they end with the process that holds them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None
        self._has_priority = False

    def yield_to_priority(self) -> None:
        """Wait for a moment if another process has priority."""
        file = self._open_file()
        if file is None:
            return
        try:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            sleep_before_retry()
        else:
            fcntl.lockf(file, fcntl.LOCK_UN)

    def request_priority(self) -> None:
        """Take the priority, if no other process has it."""
        if self._file is not None and not self._has_priority:
            with suppress(OSError):
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._has_priority = True

    def release_priority(self) -> None:
        """Give the priority back."""
        if self._has_priority and self._file is not None:
            fcntl.lockf(self._file, fcntl.LOCK_UN)
            self._has_priority = False

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
            self._has_priority = False

    def _open_file(self) -> int | None:
        if self._file is None:
            with suppress(OSError):
                self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return self._file


def sleep_before_retry() -> None:
    """Wait for a random time, about as long as a transaction takes."""
    time.sleep(random.uniform(*RETRY_DELAY_SECONDS))  # noqa: S311 - not a secret


SYNCHRONOUS_FULL, SYNCHRONOUS_NORMAL = 2, 1
AUTOCHECKPOINT_PAGES = 4000
"""A backstop: the checkpoint loop runs long before that, outside of any commit."""

_ERRORS: dict[int, tuple[type[StoreError], str]] = {
    sqlite3.SQLITE_BUSY: (StoreBusy, "the database is locked"),
    sqlite3.SQLITE_LOCKED: (StoreBusy, "the database is locked"),
    sqlite3.SQLITE_FULL: (StoreFull, "the disk is full"),
    sqlite3.SQLITE_READONLY: (StoreReadOnly, "the database is read-only"),
    sqlite3.SQLITE_CORRUPT: (StoreCorrupt, "the database is damaged"),
    sqlite3.SQLITE_NOTADB: (StoreCorrupt, "the file is not a database"),
    sqlite3.SQLITE_CANTOPEN: (StoreUnavailable, "the database cannot be opened"),
    sqlite3.SQLITE_IOERR: (StoreUnavailable, "the disk failed"),
    sqlite3.SQLITE_PERM: (StoreReadOnly, "no permission to open the database"),
}

LOOK_SECONDS = 0.05
"""How often the file is checked; a check in each transaction would cost 3 % of a cycle."""

FULL_BYTES = 1 << 20
"""A disk with less free space is full: SQLite needs more than that beside the database."""

DISK_HINT = "Check the disk and the permissions of the directory, then run: bullpen doctor"

NOT_UTF8 = "Could not decode to UTF-8"
"""The beginning of the error of Python's driver for a text that is not UTF-8."""


def translate_error(error: sqlite3.Error, path: Path) -> StoreError | None:
    """The store error for an error of SQLite; None for a programming error."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if not code and str(error).startswith(NOT_UTF8):  # the rest is a text of the database
        return StoreCorrupt(f"the database is damaged: {path} ({NOT_UTF8})")
    if code not in _ERRORS:
        return None
    kind, text = _ERRORS[code]
    unwritable = path.parent.is_dir() and not os.access(path.parent, os.W_OK)
    if code == sqlite3.SQLITE_CANTOPEN and unwritable:
        # SQLite needs files beside the database even to read it.
        kind, text = StoreReadOnly, "the directory cannot be written"
    if code == sqlite3.SQLITE_IOERR and _disk_is_full(path):
        # SQLite could not enlarge the memory that its processes share, a file beside the database.
        kind, text = StoreFull, "the disk is full"
    hint = DISK_HINT if kind is StoreUnavailable else None
    return kind(f"{text}: {path} ({error})", hint=hint)


def _disk_is_full(path: Path) -> bool:
    try:
        return shutil.disk_usage(path.parent).free < FULL_BYTES
    except OSError:
        return False


class SqliteStore(Store):
    """A database file, with one writing connection in this process."""

    dialect = "sqlite"

    def __init__(
        self, path: Path, settings: Settings, clock: Clock | None = None, ids: Ids | None = None
    ) -> None:
        super().__init__(settings, clock, ids)
        self.path = path
        self.notifier = Notifier(self)
        self._commit_notifier = CommitNotifier(self.notifier)
        self._lock = threading.Lock()
        self._fairness = WriteFairness(path.with_name(f"{path.name}-turn"))
        self._readers: list[sqlite3.Connection] = []
        self._level = (
            SYNCHRONOUS_FULL if settings.durability is Durability.DURABLE else SYNCHRONOUS_NORMAL
        )
        self._writer_synchronous = self._level
        self._writer: sqlite3.Connection | None = None
        self._name = str(path)
        self._identity: tuple[int, int] | None = None
        """The device and inode of the file, once it is open."""
        self._next_look = 0.0
        self._engine: Engine | None = None

    @property
    def engine(self) -> Engine:
        """An engine whose transactions all take the write lock when they begin."""
        if self._engine is None:
            self._engine = create_engine(
                "sqlite://", creator=self.connect, poolclass=QueuePool, pool_size=1
            )
            event.listen(self._engine, "begin", self._begin_for_engine)
        return self._engine

    def write(self, *, durable: bool = True, since: float | None = None) -> WriteContext:
        """A transaction that writes."""
        return WriteContext(self, self._level if durable else SYNCHRONOUS_NORMAL, since)

    def read(self) -> ReadContext:
        """A transaction that only reads."""
        return ReadContext(self)

    def close(self) -> None:
        """Close every connection."""
        with self._lock:
            if self._writer is not None:
                self._writer.close()
                self._writer = None
            self._fairness.close()
        while self._readers:
            self._readers.pop().close()
        if self._engine is not None:
            self._engine.dispose()
        self.notifier.close()

    def listen(self) -> DatagramListener:
        """A listener for wake-ups."""
        return DatagramListener(self)

    def revision(self) -> str | None:
        """The schema's revision."""
        try:
            with self.read() as tx:
                row = tx.fetch(SELECT_REVISION)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
                raise
            return None
        return None if row is None else str(row[0])

    def connect(self, *, query_only: bool = False) -> sqlite3.Connection:
        """A new connection with Bullpen's pragmas."""
        self.check_file()
        try:
            # SQLite's own busy handler waits for everything except BEGIN: recovery, the last close.
            connection = sqlite3.connect(
                self.path,
                timeout=self.settings.busy_seconds,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=256,
            )
        except sqlite3.Error as error:
            raise translate_error(error, self.path) or error from error
        try:
            self._set_up(connection, query_only)
        except sqlite3.Error as error:
            connection.close()
            raise translate_error(error, self.path) or error from error
        if self._identity is None:
            with suppress(OSError):
                found = self.path.stat()
                self._identity = found.st_dev, found.st_ino
        return connection

    def look_at_file(self) -> None:
        """Check the file at intervals.

        Messages accepted between two checks are lost together with the file, like earlier ones.
        """
        now = time.monotonic()
        if now >= self._next_look:
            self.check_file()
            self._next_look = now + LOOK_SECONDS

    def check_file(self) -> None:
        """Refuse a file that was removed or replaced while it was open.

        SQLite would write to the old file, which no process opens again, or create a new one.
        """
        if self._identity is None:
            return
        try:
            found = os.stat(self._name)  # noqa: PTH116 - a fifth of the time of Path.stat
        except FileNotFoundError:
            raise StoreMissing(f"the database was removed: {self.path}") from None
        except OSError:  # SQLite reports it with an error that is translated
            return
        if (found.st_dev, found.st_ino) != self._identity:
            raise StoreMissing(f"the database was replaced while it was open: {self.path}")

    def _set_up(self, connection: sqlite3.Connection, query_only: bool) -> None:
        connection.execute(f"PRAGMA synchronous = {self._level}")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute(f"PRAGMA wal_autocheckpoint = {AUTOCHECKPOINT_PAGES}")
        if query_only:
            connection.execute("PRAGMA query_only = ON")
            return
        # Setting the mode that is already on would take a lock.
        if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            # Only a new file takes this; it does nothing to one that has tables.
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA busy_timeout = 0")

    def enable_incremental_vacuum(self) -> None:
        """Rewrite a file that was created without incremental vacuum."""
        connection = self.connect()
        try:
            if connection.execute("PRAGMA auto_vacuum").fetchone()[0] == 0:
                connection.execute(f"PRAGMA busy_timeout = {self.settings.busy_seconds * 1000}")
                connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
                connection.execute("VACUUM")
        except sqlite3.Error as error:
            raise translate_error(error, self.path) or error from error
        finally:
            connection.close()

    def writer(self) -> sqlite3.Connection:
        """The one connection that writes; the caller holds the lock."""
        if self._writer is None:
            self._writer = self.connect()
            self._writer_synchronous = self._level
        return self._writer

    def acquire_reader(self) -> sqlite3.Connection:
        """A read-only connection; any thread may use it, one at a time."""
        try:
            return self._readers.pop()
        except IndexError:
            return self.connect(query_only=True)

    def release_reader(self, reader: sqlite3.Connection) -> None:
        """Return a read-only connection."""
        self._readers.append(reader)

    def lock(self, since: float) -> None:
        """Take this process's own lock of the writer; the wait is limited."""
        if self._lock.acquire(blocking=False):
            return
        left = since + self.settings.busy_seconds - time.monotonic()
        if not self._lock.acquire(timeout=max(0.0, left)):
            raise StoreBusy(f"other writes of this process are waiting for {self.path}")

    def begin(self, cursor: sqlite3.Cursor, since: float) -> None:
        """Take the write lock, retrying while other processes have it; the wait is limited.

        SQLite's own busy handler waits longer and longer, so that some processes starve. A short
        jittered retry halves the p99 at 8 processes, and write fairness halves the p99.9.
        """
        start = 0.0
        self.look_at_file()
        self._fairness.yield_to_priority()
        try:
            while True:
                try:
                    cursor.execute("BEGIN IMMEDIATE")
                except sqlite3.OperationalError as error:
                    busy = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
                    now = time.monotonic()
                    start = start or now
                    if not busy or now > since + self.settings.busy_seconds:
                        raise
                    if now - start > PRIORITY_AFTER_SECONDS:
                        self._fairness.request_priority()
                    sleep_before_retry()
                else:
                    return
        finally:
            self._fairness.release_priority()

    def _begin_for_engine(self, connection: Connection) -> None:
        driver = connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        self.begin(driver.cursor(), time.monotonic())

    def _notify_on_commit(self, connection: Connection, topics: set[str]) -> None:
        self._commit_notifier.notify_on_commit(connection, topics)


class WriteContext:
    """One write transaction as a context manager; a class, because a generator costs twice."""

    __slots__ = ("_cursor", "_level", "_since", "_store", "_tx")

    def __init__(self, store: SqliteStore, level: int, since: float | None) -> None:
        self._store = store
        self._level = level
        self._since = since

    def __enter__(self) -> Transaction:
        store = self._store
        since = time.monotonic() if self._since is None else self._since
        store.lock(since)
        try:
            cursor = self._cursor = store.writer().cursor()
            if store._writer_synchronous != self._level:
                cursor.execute(f"PRAGMA synchronous = {self._level}")
                store._writer_synchronous = self._level
            store.begin(cursor, since)
        except sqlite3.Error as error:
            store._lock.release()
            raise translate_error(error, store.path) or error from error
        except BaseException:
            store._lock.release()
            raise
        self._tx = store._transaction(cursor)
        return self._tx

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        store = self._store
        try:
            if error is None:
                self._cursor.execute("COMMIT")
        except sqlite3.Error as failed:
            error = failed
            raise translate_error(failed, store.path) or failed from failed
        finally:
            try:
                if error is not None and self._cursor.connection.in_transaction:
                    self._cursor.execute("ROLLBACK")
            finally:
                store._lock.release()
        if isinstance(error, sqlite3.Error):
            translated = translate_error(error, store.path)
            if translated is not None:
                raise translated from error
        if error is None and self._tx.topics:
            store.notifier.notify(self._tx.topics)


class ReadContext:
    """One read transaction."""

    __slots__ = ("_cursor", "_reader", "_store")

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    def __enter__(self) -> Transaction:
        self._store.look_at_file()
        self._reader = self._store.acquire_reader()
        self._cursor = self._reader.cursor()
        try:
            self._cursor.execute("BEGIN")
        except sqlite3.Error as error:
            self._reader.close()
            raise translate_error(error, self._store.path) or error from error
        return self._store._transaction(self._cursor)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._reader.in_transaction:
            self._cursor.execute("ROLLBACK")
        self._store.release_reader(self._reader)
        if isinstance(error, sqlite3.Error):
            translated = translate_error(error, self._store.path)
            if translated is not None:
                raise translated from error
