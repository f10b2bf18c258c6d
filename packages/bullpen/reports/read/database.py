"""A DuckDB database with the tables of one report, which contain only the rows of a filter.

The tables are views of the files that one manifest names, so that an answer never mixes two runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from bullpen.core.errors import ReportsDamaged, ReportsError
from bullpen.reports.manifest import MANIFEST, FactFile, Manifest, ResultFile, read_manifest
from bullpen.reports.read.catalog import require_manifest
from bullpen.reports.read.filter import DAY, Filter, filter_column
from bullpen.reports.report import Table
from bullpen.reports.schema import Column, Schema, Type

if TYPE_CHECKING:
    import duckdb

Result = TypeVar("Result")

SQL_TYPES = {
    Type.TEXT: "VARCHAR",
    Type.INTEGER: "BIGINT",
    Type.NUMBER: "DOUBLE",
    Type.BOOLEAN: "BOOLEAN",
    Type.DATE: "DATE",
}

READ_TRIES = 3
"""How many manifests are tried: files of a replaced one are kept for two more runs."""


CONFIGURATION: dict[str, str | bool | int | float | list[str]] = {
    # With one thread, rows that a view does not order have the same order on each page.
    "threads": 1,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
    "enable_external_file_cache": False,
}
"""Nothing is downloaded or kept, and the variables of Python are no tables."""


def open_database() -> duckdb.DuckDBPyConnection:
    """A new, empty database in memory."""
    # Imported at its first use: it takes 70 ms, and if a `gc.freeze` follows the import of duckdb,
    # it prints at exit that its objects have leaked.
    import duckdb

    return duckdb.connect(":memory:", config=CONFIGURATION)


_shared_database = cache(open_database)
"""The database of this process: to open one takes longer than most queries. It stays empty."""


@contextmanager
def connect() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to the shared database. Its temporary tables and views are its own."""
    import duckdb  # see open_database

    with closing(_shared_database().cursor()) as connection:
        try:
            yield connection
        except duckdb.Error:
            # After an internal error, DuckDB refuses every statement in the same database.
            _shared_database.cache_clear()
            raise


class Missing(Exception):
    """A file that the manifest names is missing, or is not the one that was written."""


def read_tables(
    directory: Path,
    tables: Sequence[Table],
    chosen: Filter,
    read: Callable[[duckdb.DuckDBPyConnection, Manifest], Result],
) -> Result:
    """Call `read` with a database that has these tables, filtered, and with their manifest."""
    return with_manifest(
        directory, lambda manifest: _read_once(directory, manifest, tables, chosen, read)
    )


def with_manifest(directory: Path, read: Callable[[Manifest], Result]) -> Result:
    """Call `read` with the manifest, and again if a run has replaced its files in between."""
    manifest = require_manifest(read_manifest(directory))
    for _ in range(READ_TRIES):
        try:
            return read(manifest)
        except Missing as missing:
            newer = require_manifest(read_manifest(directory))
            if newer == manifest:
                raise ReportsDamaged(str(missing)) from missing
            manifest = newer
    raise ReportsDamaged(f"the files that {directory / MANIFEST} names change at each attempt")


def _read_once(
    directory: Path,
    manifest: Manifest,
    tables: Sequence[Table],
    chosen: Filter,
    read: Callable[[duckdb.DuckDBPyConnection, Manifest], Result],
) -> Result:
    import duckdb  # see open_database

    paths: list[Path] = []
    try:
        with connect() as database:
            for table in tables:
                files = check_files(directory, files_in(manifest, table, chosen))
                paths += files
                database.execute(_create_view(table, files, chosen))
            return read(database, manifest)
    except duckdb.Error as error:
        for path in paths:
            check_readable(path)
        for table in tables:
            _check_columns(directory, manifest, table)
        raise ReportsError(f"the query failed: {error}") from error


def files_in(manifest: Manifest, table: Table, chosen: Filter) -> list[ResultFile]:
    """The files of a table that can have rows of the period."""
    first = "" if chosen.since is None else f"{chosen.since:%Y-%m}"
    last = "9999-99" if chosen.until is None else f"{chosen.until:%Y-%m}"
    return [each for each in manifest.results.get(table.name, ()) if first <= each.month <= last]


def check_files(directory: Path, files: Iterable[ResultFile | FactFile]) -> list[Path]:
    """The paths of files, which have the size that the manifest says."""
    paths = []
    for each in files:
        path = directory / each.name
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            raise Missing(f"{path} is missing") from None
        except OSError as error:
            raise ReportsDamaged(f"{path} cannot be read: {error}") from error
        if size != each.bytes:
            raise Missing(f"{path} has {size} bytes, but {each.bytes} were written")
        paths.append(path)
    return paths


def _create_view(table: Table, paths: Sequence[Path], chosen: Filter) -> str:
    """The statement that creates the table with the rows of the filter."""
    columns = cast_columns(table.columns)
    if not paths:
        empty = ", ".join(
            f"{quote_name(each.name)} {SQL_TYPES[each.type]}" for each in table.columns
        )
        return f"CREATE TEMP TABLE {quote_name(table.name)} ({empty})"
    source = scan_files(paths)
    return (
        f"CREATE TEMP VIEW {quote_name(table.name)} AS SELECT {columns} FROM {source}"
        f" WHERE {' AND '.join(_conditions(table, chosen)) or 'true'}"
    )


def _conditions(table: Table, chosen: Filter) -> list[str]:
    conditions = []
    if chosen.since is not None:
        conditions.append(f"{quote_name(DAY)} >= DATE '{chosen.since.isoformat()}'")
    if chosen.until is not None:
        conditions.append(f"{quote_name(DAY)} <= DATE '{chosen.until.isoformat()}'")
    for name, value in chosen.values().items():
        if (column := filter_column(table, name)) is not None:
            conditions.append(f"{quote_name(column)} = {quote_text(value)}")
    return conditions


def cast_columns(columns: Schema) -> str:
    """The columns with their declared types, for a SELECT.

    A sum of integers is a HUGEINT, which other tools and Parquet do not have.
    """
    return ", ".join(_cast(each) for each in columns)


def _cast(column: Column) -> str:
    name = quote_name(column.name)
    return f"CAST({name} AS {SQL_TYPES[column.type]}) AS {name}"


def scan_files(paths: Sequence[Path]) -> str:
    """The table function that reads these files; the directories' names are no columns."""
    names = ", ".join(quote_text(str(each)) for each in paths)
    return f"read_parquet([{names}], hive_partitioning = false)"


def quote_text(text: str) -> str:
    """A text as a literal of SQL. A view cannot have parameters."""
    return "'" + text.replace("'", "''").replace("\0", "\N{REPLACEMENT CHARACTER}") + "'"


def quote_name(name: str) -> str:
    """A name in SQL; some names of columns are keywords."""
    return '"' + name.replace('"', '""') + '"'


def check_readable(path: Path) -> None:
    """Raise the error that names this file if it cannot be read to its end."""
    import duckdb  # see open_database

    with connect() as database:
        try:
            # Counting would be answered from the statistics at the end of the file.
            database.execute(f"SELECT bit_xor(hash(f)) FROM {scan_files([path])} f").fetchall()
        except duckdb.Error as error:
            if not path.exists():
                raise Missing(f"{path} is missing") from error
            reason = str(error).splitlines()[0]
            raise ReportsDamaged(f"{path} is damaged: {reason}") from error


def _check_columns(directory: Path, manifest: Manifest, table: Table) -> None:
    """Raise the error that names a file without a column of its table."""
    with connect() as database:
        for file in manifest.results.get(table.name, ()):
            path = directory / file.name
            rows = database.execute(f"DESCRIBE SELECT * FROM {scan_files([path])}").fetchall()
            present = {str(row[0]) for row in rows}
            for column in table.columns:
                if column.name not in present:
                    raise ReportsDamaged(f"{path} has no column {column.name!r}")
