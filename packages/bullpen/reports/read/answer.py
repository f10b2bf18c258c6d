"""Answer: the rows of a view or of a table of a report, with their freshness."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bullpen.core.errors import BadQuery, Conflict, UnknownReport
from bullpen.core.text import describe_unknown
from bullpen.reports.manifest import Manifest
from bullpen.reports.read.database import (
    cast_columns,
    files_in,
    quote_name,
    read_tables,
)
from bullpen.reports.read.filter import EVERYTHING, Filter, check_filter, filter_column, filters_of
from bullpen.reports.read.freshness import Freshness, freshness_of
from bullpen.reports.read.values import JsonValue, Value, to_json
from bullpen.reports.report import Chart, Report, Table, View
from bullpen.reports.schema import Schema

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

ANSWER = "answer"
"""The temporary table of an answer. Its rows keep the order of the view."""

DIGEST_CHARS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Some rows of a view or a table, in its order."""

    report: str
    view: str
    """The name of the view or the table."""
    title: str
    columns: Schema
    chart: Chart | None
    rows: tuple[tuple[Value, ...], ...]
    total: int
    """The number of rows on all pages."""
    next_cursor: str | None
    """Where the next page begins; None on the last one."""
    filter: Filter
    ignored_filters: tuple[str, ...]
    """Filters that are given, and by which no table of the view can be filtered."""
    freshness: Freshness

    def records(self) -> list[dict[str, JsonValue]]:
        """The rows as objects of JSON, by column."""
        names = [each.name for each in self.columns]
        return [dict(zip(names, map(to_json, row), strict=True)) for row in self.rows]

    def document(self) -> Mapping[str, object]:
        """The answer as a document of JSON. It says until when its numbers are complete."""
        return {
            "report": self.report,
            "view": self.view,
            **asdict(self.freshness),
            "since": to_json(self.filter.since),
            "until": to_json(self.filter.until),
            "ignored_filters": list(self.ignored_filters),
            "total": self.total,
            "rows": self.records(),
            "next_cursor": self.next_cursor,
        }


def find_view(report: Report, name: str | None) -> View:
    """The view of this name; without a name, the first one."""
    if name is None:
        return report.views[0]
    known = {each.name: each for each in report.views}
    if name not in known:
        raise UnknownReport(
            describe_unknown("view", name, known),
            hint=f"Views of {report.name}: {', '.join(known)}.",
        )
    return known[name]


def find_table(report: Report, name: str) -> Table:
    """The table of this name."""
    known = {each.name: each for each in report.tables}
    if name not in known:
        raise UnknownReport(
            describe_unknown("table", name, known),
            hint=f"Tables of {report.name}: {', '.join(known)}.",
        )
    return known[name]


def tables_of(report: Report, view: View) -> tuple[Table, ...]:
    """The tables whose names are in the query of a view."""
    words = set(re.findall(r"\w+", view.sql))
    return tuple(each for each in report.tables if each.name in words)


def read_view(
    directory: Path,
    report: Report,
    view: View,
    chosen: Filter = EVERYTHING,
    *,
    limit: int,
    cursor: str | None = None,
) -> Answer:
    """The rows of a view, from the cursor on."""
    question = _view_question(report, view, chosen)
    return _read(directory, question, tables_of(report, view), limit, cursor)


def _view_question(report: Report, view: View, chosen: Filter) -> _Question:
    return _Question(report, view.name, view.title, view.columns, view.chart, view.sql, chosen)


def read_table(
    directory: Path,
    report: Report,
    table: Table,
    chosen: Filter = EVERYTHING,
    *,
    limit: int,
    cursor: str | None = None,
) -> Answer:
    """The rows of a table in the order of its grain, from the cursor on."""
    order = ", ".join(quote_name(each) for each in table.grain)
    sql = f"SELECT * FROM {quote_name(table.name)} ORDER BY {order}"
    title = f"{report.title}: table {table.name}"
    question = _Question(report, table.name, title, table.columns, None, sql, chosen)
    return _read(directory, question, (table,), limit, cursor)


@dataclass(frozen=True, slots=True)
class _Question:
    report: Report
    name: str
    title: str
    columns: Schema
    chart: Chart | None
    sql: str
    filter: Filter


def read_views(
    directory: Path, report: Report, chosen: Filter = EVERYTHING, *, limit: int
) -> list[Answer]:
    """The first rows of each view of a report, all from the same run of the job."""
    check_filter(report, chosen)

    def read(database: DuckDBPyConnection, manifest: Manifest) -> list[Answer]:
        return [
            _answer(
                database,
                manifest,
                _view_question(report, each, chosen),
                tables_of(report, each),
                limit,
            )
            for each in report.views
        ]

    return read_tables(directory, report.tables, chosen, read)


def _read(
    directory: Path,
    question: _Question,
    tables: tuple[Table, ...],
    limit: int,
    cursor: str | None,
) -> Answer:
    check_filter(question.report, question.filter)

    def read(database: DuckDBPyConnection, manifest: Manifest) -> Answer:
        return _answer(database, manifest, question, tables, limit, cursor)

    return read_tables(directory, tables, question.filter, read)


def _answer(
    database: DuckDBPyConnection,
    manifest: Manifest,
    question: _Question,
    tables: tuple[Table, ...],
    limit: int,
    cursor: str | None = None,
) -> Answer:
    digest = _digest(manifest, question, tables)
    offset = 0 if cursor is None else _parse_cursor(cursor, digest)
    select_answer(database, question.sql)
    total = count_answer(database)
    rows = database.execute(
        f"SELECT {cast_columns(question.columns)} FROM {ANSWER} ORDER BY rowid LIMIT ? OFFSET ?",
        [limit, offset],
    ).fetchall()
    end = offset + len(rows)
    return Answer(
        report=question.report.name,
        view=question.name,
        title=question.title,
        columns=question.columns,
        chart=question.chart,
        rows=tuple(rows),
        total=total,
        next_cursor=f"{digest}-{end}" if rows and end < total else None,
        filter=question.filter,
        ignored_filters=tuple(
            each
            for each in question.filter.values()
            if not any(filter_column(table, each) for table in tables)
        ),
        freshness=freshness_of(manifest, question.report),
    )


def select_answer(database: DuckDBPyConnection, sql: str) -> None:
    """Store the rows of a query in the temporary table of the answer."""
    # The order of a subquery would be lost; a table keeps the order in which it was filled.
    database.execute(f"CREATE OR REPLACE TEMP TABLE {ANSWER} AS {sql}")


def count_answer(database: DuckDBPyConnection) -> int:
    """The number of rows in the temporary table of the answer."""
    found = database.execute(f"SELECT count(*) FROM {ANSWER}").fetchone()
    return int(found[0]) if found else 0


def _digest(manifest: Manifest, question: _Question, tables: tuple[Table, ...]) -> str:
    """What a cursor belongs to: the files, the view and the filter."""
    files = (each for table in tables for each in files_in(manifest, table, question.filter))
    names = [each.name for each in files]
    text = repr((names, question.name, question.filter))
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_CHARS]


def _parse_cursor(cursor: str, digest: str) -> int:
    """The offset of a cursor that belongs to this question and these files."""
    found, _, offset = cursor.partition("-")
    if (
        len(found) != DIGEST_CHARS
        or not (offset.isascii() and offset.isdigit())
        or len(offset) > 15
    ):
        raise BadQuery(f"invalid cursor {cursor[:40]!r}", hint="Use the `next_cursor` of a page.")
    if found != digest:
        raise Conflict(
            "the reports or the filters have changed since the first page",
            hint="Read again from the first page.",
        )
    return int(offset)


def read_options(directory: Path, report: Report) -> dict[str, list[str]]:
    """By filter of a report: the values that occur in its tables, in order."""

    def read(database: DuckDBPyConnection, _: Manifest) -> dict[str, list[str]]:
        return {
            name: [
                str(row[0]) for row in database.execute(_select_options(report, name)).fetchall()
            ]
            for name in filters_of(report)
        }

    return read_tables(directory, report.tables, EVERYTHING, read)


def _select_options(report: Report, name: str) -> str:
    selects = [
        f"SELECT {quote_name(column)} AS value FROM {quote_name(table.name)}"
        for table in report.tables
        if (column := filter_column(table, name)) is not None
    ]
    union = " UNION ".join(selects) or "SELECT NULL AS value"
    return f"SELECT value FROM ({union}) WHERE value IS NOT NULL ORDER BY value"
