"""A transaction on a driver's own cursor: SQLite's, or that of a caller's connection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from bullpen.core.ids import Ids
from bullpen.core.settings import Settings
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import DeferredRow, Transaction, Values

if TYPE_CHECKING:
    import sqlite3

    import psycopg

    Cursor: TypeAlias = "sqlite3.Cursor | psycopg.Cursor[Any]"

Row = TypeVar("Row")


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
        row: Row | None = self._cursor.fetchone()
        return row

    def one_deferred(self, statement: Statement[Row], values: Values) -> DeferredRow[Row]:
        """Run a statement whose first row is asked for later, together with others."""
        self._cursor.execute(statement.text[self.dialect], values)
        row: Row | None = self._cursor.fetchone()
        return lambda: row

    def all(self, statement: Statement[Row], values: Values) -> list[Row]:
        """All rows of the answer."""
        self._cursor.execute(statement.text[self.dialect], values)
        rows: list[Row] = self._cursor.fetchall()
        return rows

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
