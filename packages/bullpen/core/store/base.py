"""Store: transactions on one database, with a clock, ids and wake-ups."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine

from bullpen.core.clock import Clock, SystemClock, UnchangedTimer
from bullpen.core.ids import Ids
from bullpen.core.settings import Settings
from bullpen.core.store.transaction import CursorTransaction, Transaction
from bullpen.core.wake.listener import Listener

if TYPE_CHECKING:
    from bullpen.core.store.transaction import Cursor

SELECT_REVISION = "SELECT version_num FROM alembic_version"


class Store(ABC):
    """One database. Everything that Bullpen writes goes through `write`."""

    dialect: str

    def __init__(
        self,
        settings: Settings,
        clock: Clock | None = None,
        ids: Ids | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.settings = settings
        self.clock = clock or SystemClock()
        self.ids = ids or Ids()
        self.chance = chance
        """Returns a random number from 0 to 1, for the jitter of retries."""
        self.leases = UnchangedTimer()
        """How long each lease has not been extended, as seen by this process."""

    @property
    @abstractmethod
    def engine(self) -> Engine:
        """SQLAlchemy's engine, for migrations, reports and a caller's own transactions."""

    @abstractmethod
    def write(
        self, *, durable: bool = True, since: float | None = None
    ) -> AbstractContextManager[Transaction]:
        """A transaction that writes, committed at the end of the block, rolled back by an error.

        It waits for the database for at most `busy_seconds` after `since`, a time of
        `time.monotonic`; by default now.

        `durable=False` is for changes that a power failure may undo without harm, such as a claim,
        whose message is then pending again. On SQLite it never waits for the disk.
        """

    @abstractmethod
    def read(self) -> AbstractContextManager[Transaction]:
        """A transaction that only reads, all of it at one moment."""

    @abstractmethod
    def listen(self) -> Listener:
        """A listener for what other processes commit."""

    @abstractmethod
    def revision(self) -> str | None:
        """The schema's revision; None if the database was never migrated."""

    @abstractmethod
    def close(self) -> None:
        """Close every connection."""

    @abstractmethod
    def _notify_on_commit(self, connection: Connection, topics: set[str]) -> None:
        """Wake the listeners of these topics when the caller's transaction is committed."""

    @contextmanager
    def join(self, connection: Connection) -> Iterator[Transaction]:
        """A transaction for Bullpen's verbs inside the caller's own SQLAlchemy transaction.

        Nothing is committed here; the wake-ups are sent when the caller has committed.
        """
        if not connection.in_transaction():
            connection.begin()
        driver = connection.connection.driver_connection
        assert driver is not None
        cursor = driver.cursor()
        tx = self._transaction(cursor)
        try:
            yield tx
        finally:
            cursor.close()
        if tx.topics:
            self._notify_on_commit(connection, tx.topics)

    def _transaction(self, cursor: Cursor) -> Transaction:
        return CursorTransaction(
            cursor, self.dialect, self.clock.now(), self.ids, self.settings, self.chance
        )
