"""Writes rows of any table of the store, so that the tests know each value that they read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Boolean, Column, Double, Table, Text, insert

from bullpen.core.models import whole_schema
from bullpen.core.store.base import Store
from bullpen.reports.facts.tables import FactTable

Row = dict[str, Any]

UNICODE = 'naïve 🦊 \u202e\'; DROP TABLE x; -- {brace} %s \\ "quoted"\n\ttab'
"""A text that would break what does not quote or encode it."""

BIG = 10**15 + 7


def store_table(name: str) -> Table:
    """The table of the store."""
    return whole_schema().tables[name]


def full_row(table: str, row_id: int) -> Row:
    """A row with a value in every column, each different from the row's others."""
    columns = enumerate(store_table(table).c)
    return {"id": row_id, **{c.name: _value(c, n, row_id) for n, c in columns if c.name != "id"}}


def bare_row(table: str, row_id: int) -> Row:
    """A row with NULL in every column that may be NULL."""
    nullable = {each.name: None for each in store_table(table).c if each.nullable}
    return {**full_row(table, row_id), **nullable, "id": row_id}


def write_rows(store: Store, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Insert the rows in one transaction."""
    with store.engine.begin() as connection:
        connection.execute(insert(store_table(table)), list(rows))


def expected_fact(table: FactTable, row: Row, *, archived: bool = False) -> Row:
    """The fact of a row of the store."""
    fields = json.loads(row.get("data") or "{}") if table.fields else {}
    values = {**dict.fromkeys(table.fields), **row, **fields, "archived": archived}
    if table.name == "attempts" and row["attempt"] is None:  # from before the column
        at = row["enqueued_at"]
        values |= {"attempt": row["retry_count"] + 1, "available_at": at, "conversation_at": at}
    return {each.name: values[each.name] for each in table.columns}


def _value(column: Column[Any], number: int, row_id: int) -> str | int | float | bool:
    if isinstance(column.type, Boolean):
        return bool((row_id + number) % 2)
    if isinstance(column.type, Double):
        return row_id / 7 + number
    if isinstance(column.type, Text):
        return "{}" if column.name == "data" else f"{column.name} {row_id} {UNICODE}"
    return row_id * 100 + number
