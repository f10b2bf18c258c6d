"""A transaction: what every verb is given to work with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from bullpen.core.ids import Ids
from bullpen.core.settings import Settings
from bullpen.core.store.statement import Statement

if TYPE_CHECKING:
    import sqlite3

    import psycopg

Row = TypeVar("Row")
DeferredRow: TypeAlias = "Callable[[], Row | None]"
"""Waits for the first row of an answer that is on its way."""
Values = Mapping[str, object]


class Transaction(ABC):
    """Statements on one connection, the moment at which they happen, and whom to wake after."""

    def __init__(
        self,
        dialect: str,
        now: int,
        ids: Ids,
        settings: Settings,
        chance: Callable[[], float],
    ) -> None:
        self.dialect = dialect
        """`sqlite` or `postgresql`."""
        self.now = now
        self.ids = ids
        self.settings = settings
        self.chance = chance
        self.topics: set[str] = set()

    @abstractmethod
    def write(self, statement: Statement[Any], values: Values) -> None:
        """Run a statement whose answer nobody needs."""

    @abstractmethod
    def write_each(self, statement: Statement[Any], values: Sequence[Values]) -> None:
        """Run a statement once for each of these values."""

    @abstractmethod
    def change(self, statement: Statement[Any], values: Values) -> int:
        """Run a statement and count the rows that it changed."""

    @abstractmethod
    def change_each(self, statement: Statement[Any], values: Sequence[Values]) -> list[int]:
        """Run a statement with each of these values and count the rows that each changed."""

    @abstractmethod
    def one(self, statement: Statement[Row], values: Values) -> Row | None:
        """The first row of the answer, or None."""

    @abstractmethod
    def one_each(self, statement: Statement[Row], values: Sequence[Values]) -> list[Row | None]:
        """Run a statement with each of these values; the first row of each answer."""

    @abstractmethod
    def one_deferred(self, statement: Statement[Row], values: Values) -> DeferredRow[Row]:
        """Run a statement whose first row is asked for later, together with others."""

    @abstractmethod
    def all(self, statement: Statement[Row], values: Values) -> list[Row]:
        """All rows of the answer."""

    @abstractmethod
    def fetch(self, sql: str) -> tuple[object, ...] | None:
        """The first row of a plain statement without values."""

    def wake(self, topic: str) -> None:
        """Ring for this topic once the transaction is committed."""
        self.topics.add(topic)


def make_row(statement: Statement[Row], values: Any) -> Row:  # noqa: ANN401 - as the driver gives it
    """The row of these values."""
    make = statement.make_row
    row: Row = values if make is None else make(*values)
    return row


def make_rows(statement: Statement[Row], values: list[Any]) -> list[Row]:
    """The rows of these values."""
    make = statement.make_row
    return values if make is None else [make(*each) for each in values]


if TYPE_CHECKING:
    Cursor: TypeAlias = "sqlite3.Cursor | psycopg.Cursor[Any]"


class CursorTransaction(Transaction):
    """Every statement is done when it was asked for."""

    def __init__(
        self,
        cursor: Cursor,
        dialect: str,
        now: int,
        ids: Ids,
        settings: Settings,
        chance: Callable[[], float],
    ) -> None:
        super().__init__(dialect, now, ids, settings, chance)
        self._cursor = cursor

    def write(self, statement: Statement[Any], values: Values) -> None:
        """Run a statement whose answer nobody needs."""
        self._cursor.execute(statement.text[self.dialect], values)

    def write_each(self, statement: Statement[Any], values: Sequence[Values]) -> None:
        """Run a statement once for each of these values."""
        self._cursor.executemany(statement.text[self.dialect], values)

    def change(self, statement: Statement[Any], values: Values) -> int:
        """Run a statement and count the rows that it changed."""
        self._cursor.execute(statement.text[self.dialect], values)
        return self._cursor.rowcount

    def one(self, statement: Statement[Row], values: Values) -> Row | None:
        """The first row of the answer, or None."""
        self._cursor.execute(statement.text[self.dialect], values)
        return self._first(statement)

    def one_deferred(self, statement: Statement[Row], values: Values) -> DeferredRow[Row]:
        """Run a statement whose first row is asked for later, together with others."""
        self._cursor.execute(statement.text[self.dialect], values)
        row = self._first(statement)
        return lambda: row

    def all(self, statement: Statement[Row], values: Values) -> list[Row]:
        """All rows of the answer."""
        self._cursor.execute(statement.text[self.dialect], values)
        return make_rows(statement, self._cursor.fetchall())

    def change_each(self, statement: Statement[Any], values: Sequence[Values]) -> list[int]:
        """Run a statement with each of these values and count the rows that each changed."""
        return [self.change(statement, each) for each in values]

    def one_each(self, statement: Statement[Row], values: Sequence[Values]) -> list[Row | None]:
        """Run a statement with each of these values; the first row of each answer."""
        return [self.one(statement, each) for each in values]

    def fetch(self, sql: str) -> tuple[object, ...] | None:
        """The first row of a plain statement without values."""
        self._cursor.execute(sql)
        row: tuple[object, ...] | None = self._cursor.fetchone()
        return row

    def _first(self, statement: Statement[Row]) -> Row | None:
        row = self._cursor.fetchone()
        return row if row is None else make_row(statement, row)
