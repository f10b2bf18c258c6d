"""Helpers for the tables: column types, lazy tables and partial indexes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from threading import RLock
from typing import Any, Literal, cast

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Insert,
    Integer,
    MetaData,
    Table,
    Text,
    bindparam,
    insert,
    literal_column,
    select,
    text,
)
from sqlalchemy.schema import SchemaItem
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.sql.selectable import FromClause
from sqlalchemy.types import TypeEngine

Auto = Literal["auto"]
ColumnType = TypeEngine[Any] | type[TypeEngine[Any]]

BigId = BigInteger().with_variant(Integer, "sqlite")
"""An id that grows with every row."""

Millis = BigInteger
"""A moment: milliseconds since 1970, UTC."""

METADATA = MetaData(naming_convention={"pk": "pk_%(table_name)s"})
"""The schema of the tables built so far; migrations are checked against it."""

TABLES: list[Table] = []
"""Every table of the imported modules, in order; listing them builds none."""

_BUILDING = RLock()
"""Held while a table is built: two threads may use it for the first time at once."""


class LazyTable:
    """A table or an alias, built when it is first used."""

    is_clause_element = False
    """Makes SQLAlchemy call `__clause_element__` instead of treating this as an element."""

    def __init__(self, build: Callable[[], FromClause]) -> None:
        self._build = build
        self._built: FromClause | None = None
        self.c = LazyColumns(self)

    def __clause_element__(self) -> FromClause:
        """The table itself; SQLAlchemy calls this method."""
        if self._built is None:
            with _BUILDING:
                if self._built is None:
                    self._built = self._build()
        return self._built

    def __getattr__(self, name: str) -> object:
        """Any other attribute of the table."""
        return getattr(self.__clause_element__(), name)

    def alias(self, name: str | None = None) -> LazyTable:
        """The same rows under another name."""
        return LazyTable(lambda: self.__clause_element__().alias(name))


class LazyColumns:
    """The columns of a lazy table; the first access builds the table."""

    def __init__(self, table: LazyTable) -> None:
        self._table = table

    def __getattr__(self, name: str) -> object:
        """The column of this name, or a method of the collection."""
        return getattr(self._table.__clause_element__().c, name)

    def __getitem__(self, name: str) -> object:
        """The column of this name."""
        return self._table.__clause_element__().c[name]

    def __iter__(self) -> Iterator[object]:
        """All columns."""
        return iter(self._table.__clause_element__().c)

    def __contains__(self, name: str) -> bool:
        """Whether there is a column of this name."""
        return name in self._table.__clause_element__().c

    def __len__(self) -> int:
        """The number of columns."""
        return len(self._table.__clause_element__().c)


def table(name: str, items: Callable[[], Sequence[SchemaItem]], **options: bool) -> Table:
    """A table of the schema; its columns and indexes are created when it is first used."""

    def build() -> Table:
        built = Table(name, METADATA, *items())
        built.dialect_kwargs.update(options)
        return built

    # SQLAlchemy accepts it in place of a table, and it has the attributes of a table.
    lazy = cast("Table", LazyTable(build))
    TABLES.append(lazy)
    return lazy


def column(
    name: str, kind: ColumnType, *, primary_key: bool = False, autoincrement: bool | Auto = "auto"
) -> Column[Any]:
    """A column that is not null."""
    return Column(name, kind, primary_key=primary_key, autoincrement=autoincrement, nullable=False)


def later_column(name: str, kind: ColumnType, default: str) -> Column[Any]:
    """A column that is not null and was added to a large table; older rows have this SQL value.

    The default stays in the schema: to remove it, SQLite would rewrite the table.
    """
    return Column(name, kind, nullable=False, server_default=text(default))


def nullable_column(name: str, kind: ColumnType) -> Column[Any]:
    """A column that may be NULL."""
    return Column(name, kind)


def encode_list(values: Sequence[str] | Sequence[int]) -> str:
    """A list as the text of its column."""
    return json.dumps(values)


def decode_texts(text: str | None) -> list[str]:
    """The list of texts in a column; NULL means an empty list."""
    return [str(each) for each in json.loads(text)] if text else []


def decode_numbers(text: str | None) -> list[int]:
    """The list of row ids in a column; NULL means an empty list."""
    return [int(each) for each in json.loads(text)] if text else []


def const(value: str | int) -> ColumnElement[Any]:
    """A constant in the SQL text, so that the database can use a partial index."""
    if isinstance(value, int):
        return literal_column(str(value), Integer)
    return literal_column("'" + value.replace("'", "''") + "'", Text)


def insert_if_absent(table: Table, names: Sequence[str]) -> Insert:
    """An INSERT of the parameters of these names, which does nothing if the row exists."""
    values = select(*(bindparam(each, type_=table.c[each].type) for each in names))
    # SQLite would read ON CONFLICT after a SELECT without WHERE as the ON of a join.
    return insert(table).from_select(
        [table.c[each] for each in names],
        values.where(const(1) == const(1)).suffix_with("ON CONFLICT DO NOTHING"),
    )


def partial_index(name: str, *columns: str, where: str, postgresql: str | None = None) -> Index:
    """An index over the rows that `where` selects; PostgreSQL may have its own condition.

    SQLAlchemy's own options for conditions would import both dialects, which is slow. Only code
    that creates or compares tables needs them; `whole_schema` sets them.
    """
    conditions = {"sqlite_where": text(where), "postgresql_where": text(postgresql or where)}
    return Index(name, *columns, info=conditions)
