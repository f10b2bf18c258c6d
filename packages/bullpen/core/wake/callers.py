"""Hints for what a caller commits in a transaction of his own, on SQLite.

SQLAlchemy tells of a commit before it happens, and nothing when it has. So what is asked for is
kept with the connection, and rung for when that goes back to its pool: then it has happened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakSet

from sqlalchemy import Connection, Engine, event

if TYPE_CHECKING:
    from sqlalchemy.engine.interfaces import DBAPIConnection
    from sqlalchemy.pool import ConnectionPoolEntry

    from bullpen.core.wake.datagram import Bell

ASKED, COMMITTED = "bullpen_asked", "bullpen_committed"


class CallersBell:
    """Rings when a caller's connection comes back from a commit."""

    def __init__(self, bell: Bell) -> None:
        self._bell = bell
        self._engines: WeakSet[Engine] = WeakSet()

    def ring_for(self, connection: Connection, topics: set[str]) -> None:
        """Ring for these topics if this connection's transaction is committed."""
        engine = connection.engine
        if engine not in self._engines:
            self._engines.add(engine)
            event.listen(engine, "commit", _committing)
            event.listen(engine, "rollback", _rolled_back)
            event.listen(engine.pool, "checkin", self._back)
        connection.info.setdefault(ASKED, set()).update(topics)

    def _back(self, _: DBAPIConnection | None, entry: ConnectionPoolEntry) -> None:
        topics = entry.info.pop(COMMITTED, None)
        if topics:
            self._bell.ring(topics)


def _committing(connection: Connection) -> None:
    asked = connection.info.pop(ASKED, None)
    if asked:
        connection.info.setdefault(COMMITTED, set()).update(asked)


def _rolled_back(connection: Connection) -> None:
    connection.info.pop(ASKED, None)
    connection.info.pop(COMMITTED, None)
