"""Hints for what a caller commits in a transaction of his own, on SQLite."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakSet

from sqlalchemy import Connection, Engine, event

if TYPE_CHECKING:
    from bullpen.core.wake.datagram import Bell

ASKED = "bullpen_asked"


class CallersBell:
    """Rings when a caller has committed."""

    def __init__(self, bell: Bell) -> None:
        self._bell = bell
        self._engines: WeakSet[Engine] = WeakSet()

    def ring_for(self, connection: Connection, topics: set[str]) -> None:
        """Ring for these topics if this connection's transaction is committed."""
        if connection.engine not in self._engines:
            self._engines.add(connection.engine)
            event.listen(connection.engine, "commit", self._commit)
            event.listen(connection.engine, "rollback", _forget)
        connection.info.setdefault(ASKED, set()).update(topics)

    def _commit(self, connection: Connection) -> None:
        topics = connection.info.pop(ASKED, None)
        driver = connection.connection.driver_connection
        if topics and driver is not None:
            # SQLAlchemy tells of a commit before it happens, and not when it has: so it happens
            # here, and what SQLAlchemy then commits is nothing.
            driver.commit()
            self._bell.ring(topics)


def _forget(connection: Connection) -> None:
    connection.info.pop(ASKED, None)
