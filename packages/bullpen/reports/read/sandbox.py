"""The process in which a query of a person runs: without files, and with limits.

The tables that the query names are copied into memory, and only the columns that it uses. Then
DuckDB is closed to files and settings, and the query runs. Nothing that it does can reach a file of
the reports. A process of its own is needed because some functions of DuckDB, such as `repeat`, obey
neither its limit of memory nor its limit of time.
"""

from __future__ import annotations

import json
import math
import os
import re
import resource
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from bullpen.core.errors import BadQuery, BullpenError
from bullpen.core.strict_json import Json
from bullpen.core.text import suggest
from bullpen.reports.facts.tables import FACT_TABLES
from bullpen.reports.manifest import FactFile, Manifest, ResultFile
from bullpen.reports.read.catalog import complete_until
from bullpen.reports.read.database import (
    SQL_TYPES,
    cast_columns,
    check_files,
    check_readable,
    open_database,
    quote_name,
    scan_files,
    with_manifest,
)
from bullpen.reports.read.query import Query, parse_query
from bullpen.reports.report import list_reports
from bullpen.reports.schema import Schema

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MEMORY_MB = 1024
PROCESS_MB = 2 * MEMORY_MB
"""The limit of the whole process, for functions that do not obey the limit of DuckDB."""


MAX_INTEGER = 1 << 63
"""Integers of more bits are texts in JSON."""

TIMED_OUT = 124
"""The exit status after the limit of time."""
GRACE_SECONDS = 1.0

TOO_LARGE = f"the query needs more than {MEMORY_MB} MB of memory"
TOO_LARGE_HINT = "Read fewer rows or columns, or add a LIMIT."
COLUMNS_HINT = "Run `bullpen report sql --tables` to see all columns."
_UNKNOWN_COLUMN = re.compile(r'(?:Referenced column|have a column named) "(?P<name>[^"]+)"')
TOO_LONG = "the query took too long"
TOO_LONG_HINT = "Read fewer rows, or use --timeout to allow more time."


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the process is to do."""

    directory: str
    sql: str
    limit: int
    seconds: float
    since: str | None
    """The first day of facts and results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlTable:
    """A table that queries can name."""

    name: str
    kind: str
    """`facts`, or the name of the report."""
    columns: Schema


def sql_tables() -> list[SqlTable]:
    """The facts, and the tables of all reports."""
    facts = [
        SqlTable(name=each.name, kind="facts", columns=each.landed_columns)
        for each in FACT_TABLES.values()
        if each.landed
    ]
    results = [
        SqlTable(name=table.name, kind=report.name, columns=table.columns)
        for report in list_reports()
        for table in report.tables
    ]
    return [*facts, *results]


def files_of(
    manifest: Manifest, table: SqlTable, since: str | None = None
) -> Sequence[ResultFile | FactFile]:
    """The files of a table that have rows from this day on; of facts, days are of UTC."""
    first = since or ""
    if table.kind == "facts":
        state = manifest.facts.get(table.name)
        return [] if state is None else [each for each in state.files if each.date >= first]
    return [each for each in manifest.results.get(table.name, ()) if each.month >= first[:7]]


def run_query(request: Request) -> dict[str, object]:
    """The columns and rows of the query, and until when the tables are complete."""
    import duckdb  # see open_database

    directory = Path(request.directory)
    tables = {each.name.lower(): each for each in sql_tables()}
    with open_database() as database:
        query = parse_query(database, request.sql, [each.name for each in tables.values()])
        named = [tables[each] for each in sorted(query.tables)]

        def load(manifest: Manifest) -> Manifest:
            for each in named:
                files = files_of(manifest, each, request.since)
                _copy(database, each, query, check_files(directory, files), request.since)
            return manifest

        database.execute("SET temp_directory = ''")
        database.execute(f"SET memory_limit = '{MEMORY_MB}MB'")
        manifest = with_manifest(directory, load)
        _close(database, request.seconds)
        # Ends the process if a function does not obey DuckDB's own limit of time.
        watch = threading.Timer(request.seconds + GRACE_SECONDS, os._exit, [TIMED_OUT])
        watch.daemon = True
        watch.start()
        try:
            cursor = database.execute(request.sql)
            rows = cursor.fetchmany(request.limit + 1)
        except (duckdb.Error, MemoryError) as error:
            raise _describe(
                error, [each.name for table in named for each in table.columns]
            ) from error
        finally:
            watch.cancel()
        columns = [
            {"name": str(name), "type": str(kind)} for name, kind, *_ in cursor.description or ()
        ]
    return {
        "columns": columns,
        "rows": [[_to_json(cell) for cell in row] for row in rows[: request.limit]],
        "truncated": len(rows) > request.limit,
        "covers_until": complete_until(manifest),
        "generated_at": manifest.generated_at,
        "zone": manifest.zone,
    }


def _copy(
    database: DuckDBPyConnection,
    table: SqlTable,
    query: Query,
    paths: Sequence[Path],
    since: str | None,
) -> None:
    """Copy the columns that the query uses into memory."""
    import duckdb  # see open_database

    names = query.columns([each.name for each in table.columns])
    used = [each for each in table.columns if each.name in names] or table.columns[:1]
    name = quote_name(table.name)
    # A second attempt, with a newer manifest, copies everything again.
    database.execute(f"DROP TABLE IF EXISTS {name}")
    if not paths:
        columns = ", ".join(f"{quote_name(each.name)} {SQL_TYPES[each.type]}" for each in used)
        database.execute(f"CREATE TABLE {name} ({columns})")
        return
    where = "true"
    if since is not None and table.kind != "facts":
        where = f"day >= DATE '{date.fromisoformat(since)}'"
    sql = f"SELECT {cast_columns(tuple(used))} FROM {scan_files(paths)} WHERE {where}"
    try:
        database.execute(f"CREATE TABLE {name} AS {sql}")
    except duckdb.OutOfMemoryException as error:
        raise BadQuery(
            f"the columns of {table.name} need more than {MEMORY_MB} MB of memory",
            hint="Name the columns that you need instead of `*`, or read fewer days with --since.",
        ) from error
    except duckdb.Error:
        for path in paths:
            check_readable(path)
        raise


def _close(database: DuckDBPyConnection, seconds: float) -> None:
    """Close the database to files and settings permanently."""
    database.execute(f"SET max_execution_time = {max(1, math.ceil(seconds * 1000))}")
    database.execute("SET enable_external_access = false")
    database.execute("SET lock_configuration = true")


def _describe(error: Exception, columns: Sequence[str]) -> BadQuery:
    """The error of a query over tables with these columns, as far as it helps who wrote it."""
    import duckdb  # see open_database

    if isinstance(error, duckdb.OutOfMemoryException | MemoryError):
        return BadQuery(TOO_LARGE, hint=TOO_LARGE_HINT)
    if isinstance(error, duckdb.InterruptException):
        return BadQuery(TOO_LONG, hint=TOO_LONG_HINT)
    text = str(error)
    if unknown := _UNKNOWN_COLUMN.search(text):
        # DuckDB's candidates are only the columns that were copied.
        text = re.sub(r"\n+Candidate bindings:.*", "", text)
        suggestion = suggest(unknown["name"], columns)
        return BadQuery(
            f"the query failed: {text}",
            hint=f"{suggestion} {COLUMNS_HINT}" if suggestion else COLUMNS_HINT,
        )
    return BadQuery(f"the query failed: {text}")


def _to_json(value: object) -> Json:
    """A value of DuckDB for JSON; numbers that JSON lacks are null."""
    if isinstance(value, int) and not -MAX_INTEGER <= value < MAX_INTEGER:
        return str(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float | Decimal):
        number = float(value)
        return number if math.isfinite(number) else None
    if isinstance(value, list | tuple):
        return [_to_json(each) for each in value]
    if isinstance(value, Mapping):
        return {str(key): _to_json(each) for key, each in value.items()}
    return value.hex() if isinstance(value, bytes) else str(value)


def main() -> None:
    """Read a request from standard input, and print the result or the error as JSON."""
    resource.setrlimit(resource.RLIMIT_DATA, (PROCESS_MB << 20, PROCESS_MB << 20))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # no file can be written
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        answer = run_query(Request(**json.loads(sys.stdin.read())))
    except BullpenError as error:
        answer = {"error": str(error), "code": error.code, "hint": error.hint}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
