"""Transaction: the first parameter of every verb."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from bullpen.core.ids import Ids
from bullpen.core.settings import Settings
from bullpen.core.store.statement import Statement

if TYPE_CHECKING:
    import sqlite3

    import psycopg

    Cursor: TypeAlias = sqlite3.Cursor | psycopg.Cursor[Any]

Row = TypeVar("Row")
Other = TypeVar("Other")


class Cut(list[Row]):
    """The first rows of a page that was cut at the limit of bytes."""


DeferredRow: TypeAlias = "Callable[[], Row | None]"
"""Waits for the first row of a statement that was sent."""
Values = Mapping[str, object]


class Transaction(ABC):
    """Statements on one connection, the time of the transaction, and the topics to wake."""

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
        self.page_bytes: int | None = None
        """The maximum size of one page in bytes; None: no limit."""

    @abstractmethod
    def write(self, statement: Statement[Any], values: Values) -> None:
        """Run a statement without a result."""

    @abstractmethod
    def write_each(self, statement: Statement[Any], values: Sequence[Values]) -> None:
        """Run a statement once for each of these values."""

    @abstractmethod
    def change(self, statement: Statement[Any], values: Values) -> int:
        """Run a statement; returns the number of rows that it changed."""

    @abstractmethod
    def change_each(self, statement: Statement[Any], values: Sequence[Values]) -> list[int]:
        """Run a statement with each of these values; returns how many rows each changed."""

    @abstractmethod
    def one(self, statement: Statement[Row], values: Values) -> Row | None:
        """The first row of the result, or None."""

    @abstractmethod
    def one_each(self, statement: Statement[Row], values: Sequence[Values]) -> list[Row | None]:
        """Run a statement with each of these values; returns the first row of each result."""

    @abstractmethod
    def one_deferred(self, statement: Statement[Row], values: Values) -> DeferredRow[Row]:
        """Send a statement whose first row is read later, so that several can travel together."""

    @abstractmethod
    def all(self, statement: Statement[Row], values: Values) -> list[Row]:
        """All rows of the result."""

    @abstractmethod
    def page(self, statement: Statement[Row], values: Values) -> list[Row]:
        """The first rows of the result, as many as `page_bytes` allows and at least one.

        It is a `Cut` if there are more rows, which are never in memory.
        """

    @abstractmethod
    def fetch(self, sql: str) -> tuple[object, ...] | None:
        """The first row of a plain SQL text without values."""

    def wake(self, topic: str) -> None:
        """Wake the listeners of a topic after the commit."""
        self.topics.add(topic)


class CursorTransaction(Transaction):
    """Runs every statement at once, on a DB-API cursor."""

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
        """Run a statement without a result."""
        self._execute(statement, values)

    def write_each(self, statement: Statement[Any], values: Sequence[Values]) -> None:
        """Run a statement once for each of these values."""
        if self.dialect == "sqlite":
            sql, values_of = statement.positional
            self._cursor.executemany(sql, [values_of(each) for each in values])
        else:
            self._cursor.executemany(statement.text[self.dialect], values)

    def change(self, statement: Statement[Any], values: Values) -> int:
        """Run a statement; returns the number of rows that it changed."""
        self._execute(statement, values)
        return self._cursor.rowcount

    def one(self, statement: Statement[Row], values: Values) -> Row | None:
        """The first row of the result, or None."""
        self._execute(statement, values)
        return self._first(statement)

    def one_deferred(self, statement: Statement[Row], values: Values) -> DeferredRow[Row]:
        """Send a statement whose first row is read later, so that several can travel together."""
        self._execute(statement, values)
        row = self._first(statement)
        return lambda: row

    def all(self, statement: Statement[Row], values: Values) -> list[Row]:
        """All rows of the result."""
        self._execute(statement, values)
        return make_rows(statement, self._cursor.fetchall())

    def page(self, statement: Statement[Row], values: Values) -> list[Row]:
        """The first rows of the result, as many as `page_bytes` allows."""
        self._execute(statement, values)
        return make_page(statement, self._cursor, self.page_bytes)

    def change_each(self, statement: Statement[Any], values: Sequence[Values]) -> list[int]:
        """Run a statement with each of these values; returns how many rows each changed."""
        return [self.change(statement, each) for each in values]

    def one_each(self, statement: Statement[Row], values: Sequence[Values]) -> list[Row | None]:
        """Run a statement with each of these values; returns the first row of each result."""
        return [self.one(statement, each) for each in values]

    def fetch(self, sql: str) -> tuple[object, ...] | None:
        """The first row of a plain SQL text without values."""
        self._cursor.execute(sql)
        row: tuple[object, ...] | None = self._cursor.fetchone()
        return row

    def _execute(self, statement: Statement[Any], values: Values) -> None:
        if self.dialect == "sqlite":
            sql, values_of = statement.positional
            self._cursor.execute(sql, values_of(values))
        else:
            self._cursor.execute(statement.text[self.dialect], values)

    def _first(self, statement: Statement[Row]) -> Row | None:
        row = self._cursor.fetchone()
        return row if row is None else make_row(statement, row)


def make_row(statement: Statement[Row], values: Any) -> Row:  # noqa: ANN401 - as the driver gives it
    """The row of these values."""
    make = statement.make_row
    row: Row = values if make is None else make(*values)
    return row


def make_rows(statement: Statement[Row], values: list[Any]) -> list[Row]:
    """The rows of these values."""
    make = statement.make_row
    return values if make is None else [make(*each) for each in values]


def make_page(statement: Statement[Row], values: Iterable[Any], most: int | None) -> list[Row]:
    """Return the rows of these values up to a number of bytes; no more of them are read."""
    if most is None:
        return make_rows(statement, list(values))
    taken: list[Any] = []
    held = 0
    for each in values:
        held += row_bytes(each)
        if taken and held > most:
            return Cut(make_rows(statement, taken))
        taken.append(each)
    return make_rows(statement, taken)


def map_page(rows: Sequence[Row], make: Callable[[Row], Other]) -> list[Other]:
    """What is made of each row; of a page that was cut, as such a page."""
    made = [make(each) for each in rows]
    return Cut(made) if isinstance(rows, Cut) else made


def row_bytes(values: Iterable[object]) -> int:
    """About how many bytes the texts of a row take in memory."""
    texts = [each for each in values if isinstance(each, str)]
    return sum([len(each) if each.isascii() else 4 * len(each) for each in texts])
