"""Write the rows of a history into PostgreSQL with COPY."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import psycopg
from psycopg import sql

from bullpen.core.store.base import Store
from bullpen.core.store.postgres import PostgresStore
from bullpen.core.store.postgres_errors import translate_error
from bullpen.ops.demo.bulk import LANE_COLUMNS, BulkWriter
from bullpen.ops.demo.rows import Rows

NUMBERED_TABLES = ("messages", "responses", "agent_messages", "chat_messages")
"""Tables whose rows come with their ids, so that their sequences must be advanced."""


@contextmanager
def postgres_writer(store: Store) -> Iterator[BulkWriter]:
    """A writer with a connection of its own."""
    assert isinstance(store, PostgresStore)
    with closing(store.connect()) as connection:
        try:
            yield _PostgresWriter(connection)
        except psycopg.Error as error:
            raise translate_error(error) or error from error


class _PostgresWriter(BulkWriter):
    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def write(self, rows: Rows) -> None:
        with self._connection.transaction(), self._connection.cursor() as cursor:
            for name, each in rows.tables().items():
                if not each:
                    continue
                columns = sql.SQL(", ").join(map(sql.Identifier, each[0]._fields))
                into = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(name), columns)
                with cursor.copy(into) as copy:
                    for row in each:
                        copy.write_row(row)
            cursor.executemany(_UPDATE_LANE, [(*each[1:], each.agent) for each in rows.lanes])

    def finish(self) -> None:
        for name in NUMBERED_TABLES:
            table = sql.Identifier(name)
            self._connection.execute(
                sql.SQL(
                    "SELECT setval(pg_get_serial_sequence({}, 'id'), max(id)) FROM {}"
                    " HAVING max(id) > 0"
                ).format(sql.Literal(name), table)
            )
        self._connection.execute("ANALYZE")

    def clear(self, tables: Sequence[str]) -> None:
        names = sql.SQL(", ").join(map(sql.Identifier, tables))
        self._connection.execute(sql.SQL("TRUNCATE {} RESTART IDENTITY").format(names))


_UPDATE_LANE = sql.SQL("UPDATE lanes SET {} WHERE agent = %s").format(
    sql.SQL(", ").join(sql.SQL("{} = %s").format(sql.Identifier(each)) for each in LANE_COLUMNS)
)
