"""Paging through growing tables: by column and by time, and row ids as parameters."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from enum import Enum
from functools import cache
from operator import attrgetter
from typing import Any, Generic, TypeVar

from sqlalchemy import Boolean, Column, ColumnElement, Table, Text, bindparam, func, select
from sqlalchemy.ext.compiler import compiles

from bullpen.core.clock import MINUTE
from bullpen.core.models.base import const
from bullpen.core.store.statement import Statement, columns
from bullpen.core.store.transaction import Cut, Transaction, row_bytes
from bullpen.core.text import check_text

Row = TypeVar("Row")

MAX_ROW_ID = 1 << 62
"""No row has so high an id."""

MAX_ID_DIGITS = 18
"""A longer number fits into no database's integer."""


def parse_row_id(text: str) -> int | None:
    """The row id that a text is; None if it cannot be one."""
    is_id = text.isascii() and text.isdecimal() and len(text) <= MAX_ID_DIGITS
    return int(text) if is_id else None


class TablePager(Generic[Row]):
    """Pages of a table's rows, as a dataclass of its columns; with a condition, only some rows."""

    def __init__(
        self,
        table: Table,
        row: type[Row],
        condition: Callable[[], ColumnElement[bool]] | None = None,
    ) -> None:
        self._table = table
        self._row = row
        self._condition = condition
        self._statement = cache(self._build_statement)

    def page(
        self,
        tx: Transaction,
        filters: Mapping[str, object],
        since: int | None,
        limit: int,
        upto: int = MAX_ROW_ID,
    ) -> list[Row]:
        """The next rows after an id and up to another; without `since` the newest first.

        `filters` are values by column; None matches anything. With several writers a lower id may
        be committed later: `committed_up_to` returns the id up to which no row is missing.
        """
        values: dict[str, object] = {
            name: value.value if isinstance(value, Enum) else value
            for name, value in filters.items()
            if value is not None
        }
        for value in values.values():
            check_text(str(value), tx.settings.message_bytes, "the filter")
        names = frozenset(values)
        values["limit"] = limit
        if since is not None:
            values.update(since=since, upto=upto)
        return tx.page(self._statement(names, since is not None), values)

    def _build_statement(self, names: frozenset[str], forward: bool) -> Statement[Row]:
        id_ = self._table.c.id
        where = [self._table.c[name] == bindparam(name) for name in sorted(names)]
        if self._condition is not None:
            where.insert(0, self._condition())
        order = id_.desc()
        if forward:
            where += [id_ > bindparam("since"), id_ <= bindparam("upto")]
            order = id_.asc()
        return Statement(
            lambda: (
                select(*columns(self._row, self._table))
                .where(*where)
                .order_by(order)
                .limit(bindparam("limit"))
            ),
            self._row,
        )


def cut_page(tx: Transaction, rows: Iterable[Row]) -> list[Row]:
    """The first of these rows, which are dataclasses, as `Transaction.page` would cut them."""
    if tx.page_bytes is None:
        return list(rows)
    taken: list[Row] = []
    held = 0
    for each in rows:
        held += _bytes_of(each)
        if taken and held > tx.page_bytes:
            return Cut(taken)
        taken.append(each)
    return taken


def _bytes_of(row: object) -> int:
    kind: type = type(row)
    return row_bytes(_fields_of(kind)(row))


@cache
def _fields_of(kind: type) -> Callable[[object], tuple[object, ...]]:
    """What reads the fields of a dataclass."""
    return attrgetter(*(each.name for each in fields(kind)))


def since_values(tx: Transaction, table: Table, since: int | None) -> dict[str, int]:
    """What bounds a statement to rows from a moment on: their ids, and the moment itself."""
    if since is None:
        return {"after": 0, "since": 0}
    return {"after": first_id_since(tx, table, since), "since": since}


def first_id_since(tx: Transaction, table: Table, moment: int) -> int:
    """An id below that of every row with this `created_at` or a later one, by binary search."""
    ends = tx.one(_id_range(table), {})
    if ends is None or ends[0] is None or ends[1] is None:
        return 0
    low, high = ends[0] - 1, ends[1] + 1
    # An id is taken before its transaction commits: ids may be out of the order of time.
    early = moment - MINUTE
    while high - low > 1:
        middle = (low + high) // 2
        row = tx.one(_row_from_id(table), {"number": middle})
        if row is None or row[1] >= early:
            high = middle
        else:
            low = row[0]
    return low


@cache
def _id_range(table: Table) -> Statement[tuple[int | None, int | None]]:
    first, last = (select(end(table.c.id)).scalar_subquery() for end in (func.min, func.max))
    return Statement(lambda: select(first, last))


@cache
def _row_from_id(table: Table) -> Statement[tuple[int, int]]:
    return Statement(
        lambda: (
            select(table.c.id, table.c.created_at)
            .where(table.c.id >= bindparam("number"))
            .order_by(table.c.id)
            .limit(const(1))
        )
    )


class JsonIn(ColumnElement[bool]):
    """Whether a column is in the JSON list of numbers with this parameter name."""

    inherit_cache = False
    type = Boolean()

    def __init__(self, column: Column[int], name: str) -> None:
        self.column = column
        self.numbers = bindparam(name, type_=Text)

    def self_group(self, against: object = None) -> JsonIn:
        """Returns itself: SQLAlchemy would compare a Boolean to 1 in SQLite, and use no index."""
        return self


def encode_ids(ids: Iterable[int]) -> str:
    """Ids in the form that `JsonIn` takes."""
    return json.dumps(list(ids))


@compiles(JsonIn, "sqlite")
def _compile_sqlite(element: JsonIn, compiler: Any, **more: Any) -> str:  # noqa: ANN401 - as SQLAlchemy
    column, numbers = (compiler.process(each, **more) for each in (element.column, element.numbers))
    return f"{column} IN (SELECT value FROM json_each({numbers}))"  # noqa: S608 - both compiled


@compiles(JsonIn, "postgresql")
def _compile_postgresql(element: JsonIn, compiler: Any, **more: Any) -> str:  # noqa: ANN401
    column, numbers = (compiler.process(each, **more) for each in (element.column, element.numbers))
    # An array and not a subquery, so that the planner knows that they are few and uses the index.
    elements = f"SELECT jsonb_array_elements_text(CAST({numbers} AS jsonb))::bigint"
    return f"{column} = ANY (ARRAY({elements}))"
