"""Hints for what a caller commits in a transaction of his own, on SQLite."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakSet

from sqlalchemy import Connection, Engine, event

if TYPE_CHECKING:
    from bullpen.core.wake.datagram import Notifier

PENDING_TOPICS = "bullpen_asked"


class CommitNotifier:
    """Rings when a caller has committed."""

    def __init__(self, bell: Notifier) -> None:
        self._notifier = bell
        self._engines: WeakSet[Engine] = WeakSet()

    def notify_on_commit(self, connection: Connection, topics: set[str]) -> None:
        """Ring for these topics if this connection's transaction is committed."""
        if connection.engine not in self._engines:
            self._engines.add(connection.engine)
            event.listen(connection.engine, "commit", self._commit)
            event.listen(connection.engine, "rollback", _discard_pending)
        connection.info.setdefault(PENDING_TOPICS, set()).update(topics)

    def _commit(self, connection: Connection) -> None:
        topics = connection.info.pop(PENDING_TOPICS, None)
        driver = connection.connection.driver_connection
        if topics and driver is not None:
            # SQLAlchemy tells of a commit before it happens, and not when it has: so it happens
            # here, and what SQLAlchemy then commits is nothing.
            driver.commit()
            self._notifier.ring(topics)


def _discard_pending(connection: Connection) -> None:
    connection.info.pop(PENDING_TOPICS, None)
