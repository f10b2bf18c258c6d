"""Read facts as Arrow record batches, by ADBC: a range of ids, some columns, a condition.

Spark's tasks run this, also on other machines: it imports PyArrow and the drivers of ADBC, and
nothing else that the machine may not have. SQLite is read in short statements, because a reader
that stays keeps the write-ahead log growing: no statement is open while the caller uses a batch.

It does not use the DB-API of ADBC, which imports pandas: 0.3 s and 50 MB of each process.
"""

from __future__ import annotations

import os
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote

from bullpen.core.errors import NotShared, StoreError, StoreUnavailable
from bullpen.core.text import SecretMask, mask_url, url_secrets
from bullpen.reports.facts.tables import FactTable, quote_name
from bullpen.reports.schema import Schema, Type

if TYPE_CHECKING:
    import pyarrow as pa
    from adbc_driver_manager import AdbcDatabase, AdbcStatement

RANGE_ROWS = 250_000
"""So many that starting a task does not count, and so few that reading them takes a second."""

CONNECT_SECONDS = 5
BUSY_MILLISECONDS = 30_000

ONE_BATCH = "1000000"
"""Rows in a batch of ADBC: more than a statement gives."""

_SCHEME = re.compile(r"(?P<dialect>\w+)(\+\w+)?://")

_VALUES = {Type.TEXT: "''", Type.NUMBER: "0.0", Type.INTEGER: "0", Type.BOOLEAN: "0"}
"""A value of each type, in SQLite's SQL."""


@dataclass(frozen=True, slots=True)
class IdRange:
    """The ids from the first to the last, both included."""

    first: int
    last: int


@dataclass(frozen=True, slots=True, repr=False)
class StoreAddress:
    """The URL of the store. It may contain a password, so its text does not show it."""

    url: str

    def __repr__(self) -> str:
        return f"StoreAddress({mask_url(self.url)!r})"

    @property
    def dialect(self) -> str:
        """`sqlite` or `postgresql`."""
        return "sqlite" if self._scheme["dialect"] == "sqlite" else "postgresql"

    @contextmanager
    def open(self) -> Iterator[AdbcStatement]:
        """A statement on a connection of its own; what it runs is one transaction each time."""
        from adbc_driver_manager import AdbcConnection, AdbcStatement

        with ExitStack() as stack:
            where = {"sqlite": "open the database", "postgresql": "connect to PostgreSQL"}
            with self.translate_errors(f"cannot {where[self.dialect]}"):
                database = stack.enter_context(self._database())
                connection = stack.enter_context(AdbcConnection(database))
                statement = stack.enter_context(AdbcStatement(connection))
            yield statement

    def _database(self) -> AdbcDatabase:
        # A machine needs only the driver of its database.
        if self.dialect == "sqlite":
            import adbc_driver_sqlite

            return adbc_driver_sqlite.connect(self.file_uri())
        import adbc_driver_postgresql

        rest = self.url[self._scheme.end() :]
        if "connect_timeout=" not in rest:
            rest += f"{'&' if '?' in rest else '?'}connect_timeout={CONNECT_SECONDS}"
        database: AdbcDatabase = adbc_driver_postgresql.connect(f"postgresql://{rest}")
        return database

    def file_uri(self) -> str:
        """The URI that opens the file of SQLite for reading."""
        path = self.url[self._scheme.end() :].removeprefix("/")
        if not os.path.exists(path):  # noqa: PTH110 - False also where it is not allowed
            raise NotShared(
                f"the database does not exist on this machine: {path}",
                hint="Use PostgreSQL if Spark runs tasks on several machines.",
            )
        return f"file:{quote(path)}?mode=ro"

    @contextmanager
    def translate_errors(self, what: str) -> Iterator[None]:
        """Raise the errors of ADBC as those of the store, without the password."""
        import pyarrow as pa
        from adbc_driver_manager import Error, OperationalError

        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(f"{what}: {error}") from error
        # An error in the middle of a result is one of PyArrow, or of the system.
        except (Error, pa.ArrowException, OSError) as error:
            text = SecretMask(url_secrets(self.url))(str(error).strip().partition("\n")[0])
            is_away = isinstance(error, (OperationalError, OSError))
            ours = StoreUnavailable if is_away else StoreError
            # The traceback would show the cause, with whatever the driver says.
            raise ours(f"{what}: {text}") from None

    @property
    def _scheme(self) -> re.Match[str]:
        found = _SCHEME.match(self.url)
        assert found is not None  # the settings were checked
        return found


def arrow_schema(columns: Schema) -> pa.Schema:
    """The schema of the batches. Every column may be NULL, as in Spark."""
    import pyarrow as pa

    types = {
        Type.TEXT: pa.string(),
        Type.INTEGER: pa.int64(),
        Type.NUMBER: pa.float64(),
        Type.BOOLEAN: pa.bool_(),
        Type.DATE: pa.date32(),
    }
    return pa.schema([pa.field(each.name, types[each.type]) for each in columns])


def read_range(
    address: StoreAddress,
    table: FactTable,
    names: Sequence[str],
    ids: IdRange,
    where: str = "",
) -> Iterator[pa.RecordBatch]:
    """The columns of these names, of all rows with these ids.

    `where` is a condition on any columns, in the SQL of the database.
    """
    columns = table.select_columns(names)
    schema = arrow_schema(columns)
    read = _read_sqlite if address.dialect == "sqlite" else _read_postgres
    for batch in read(address, table, columns, ids, where):
        if batch.num_rows:
            yield batch if batch.schema == schema else _cast(batch, schema)


def _read_sqlite(
    address: StoreAddress,
    table: FactTable,
    columns: Schema,
    ids: IdRange,
    where: str,
) -> Iterator[pa.RecordBatch]:
    """A batch for each statement."""
    names = [each.name for each in columns]
    open_file = _open_by_python if python_may_have_it_open() else _open_by_adbc
    with open_file(address) as fetch:
        for first in range(ids.first, ids.last + 1, table.batch_ids):
            last = min(first + table.batch_ids - 1, ids.last)
            sql = table.select("sqlite", names, first, last, where)
            with address.translate_errors(f"cannot read the table {table.name}"):
                batch = fetch(sql, columns)
            yield batch


Fetch = Callable[[str, Schema], "pa.RecordBatch"]
"""Runs a statement."""


def python_may_have_it_open() -> bool:
    """Whether this process may use SQLite by Python's module as well.

    ADBC has a library of its own. Two of them in one process undo each other's locks on a file:
    other processes then delete what is in use, which ends in a crash or in a damaged database.
    Tasks of Spark have a process in which the store is never opened.
    """
    return "bullpen.core.store.sqlite" in sys.modules


@contextmanager
def _open_by_adbc(address: StoreAddress) -> Iterator[Fetch]:
    with address.open() as statement:
        with address.translate_errors("cannot read the database"):
            statement.set_sql_query(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")
            statement.execute_update()
            statement.set_options(**{"adbc.sqlite.query.batch_rows": ONE_BATCH})
        yield partial(_fetch_by_adbc, statement)


@contextmanager
def _open_by_python(address: StoreAddress) -> Iterator[Fetch]:
    with closing(sqlite3.connect(address.file_uri(), uri=True)) as connection:
        connection.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")
        yield partial(_fetch_by_python, connection)


def _fetch_by_adbc(statement: AdbcStatement, sql: str, columns: Schema) -> pa.RecordBatch:
    # The driver takes the types of a batch from its first row.
    typed = ", ".join(f"{_VALUES[each.type]} AS {quote_name(each.name)}" for each in columns)
    (batch,) = _execute(statement, f"SELECT {typed} UNION ALL {sql}")
    return batch.slice(1)


def _fetch_by_python(connection: sqlite3.Connection, sql: str, columns: Schema) -> pa.RecordBatch:
    import pyarrow as pa

    values = list(zip(*connection.execute(sql), strict=True)) or [()] * len(columns)
    schema = arrow_schema(columns)
    arrays = [
        # SQLite has no booleans.
        pa.array(each, pa.int64() if field.type == pa.bool_() else field.type)
        for each, field in zip(values, schema, strict=True)
    ]
    return _cast(pa.RecordBatch.from_arrays(arrays, schema.names), schema)


def _read_postgres(
    address: StoreAddress,
    table: FactTable,
    columns: Schema,
    ids: IdRange,
    where: str,
) -> Iterator[pa.RecordBatch]:
    names = [each.name for each in columns]
    sql = table.select("postgresql", names, ids.first, ids.last, where)
    with (
        address.open() as statement,
        address.translate_errors(f"cannot read the table {table.name}"),
    ):
        yield from _execute(statement, sql)


def _execute(statement: AdbcStatement, sql: str) -> pa.RecordBatchReader:
    import pyarrow as pa

    statement.set_sql_query(sql)
    stream, _ = statement.execute_query()
    return pa.RecordBatchReader.from_stream(stream)


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with the types of the schema: SQLite has no booleans, PostgreSQL short integers."""
    import pyarrow as pa

    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
