"""Answer: the rows of a view or of a table of a report, with their freshness."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bullpen.core.errors import BadQuery, Conflict, UnknownReport
from bullpen.core.text import describe_unknown
from bullpen.reports.manifest import Manifest
from bullpen.reports.read.catalog import Freshness, freshness_of
from bullpen.reports.read.database import (
    cast_columns,
    files_in,
    quote_name,
    read_tables,
)
from bullpen.reports.read.filter import EVERYTHING, Filter, check_filter, filter_column, filters_of
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked of a report: a query over some of its tables, with a filter."""

    report: Report
    name: str
    title: str
    columns: Schema
    chart: Chart | None
    sql: str
    tables: tuple[Table, ...]
    filter: Filter


def view_question(report: Report, view: View, chosen: Filter) -> Question:
    """The query of a view."""
    return Question(
        report=report,
        name=view.name,
        title=view.title,
        columns=view.columns,
        chart=view.chart,
        sql=view.sql,
        tables=tables_of(report, view),
        filter=chosen,
    )


def table_question(report: Report, table: Table, chosen: Filter) -> Question:
    """All columns of a table, in the order of its grain."""
    order = ", ".join(quote_name(each) for each in table.grain)
    return Question(
        report=report,
        name=table.name,
        title=f"{report.title}: table {table.name}",
        columns=table.columns,
        chart=None,
        sql=f"SELECT * FROM {quote_name(table.name)} ORDER BY {order}",
        tables=(table,),
        filter=chosen,
    )


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
    return read_answer(directory, view_question(report, view, chosen), limit=limit, cursor=cursor)


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
    return read_answer(directory, table_question(report, table, chosen), limit=limit, cursor=cursor)


def read_answer(
    directory: Path, question: Question, *, limit: int, cursor: str | None = None
) -> Answer:
    """Some rows of a question, from the cursor on."""
    check_filter(question.report, question.filter)

    def read(database: DuckDBPyConnection, manifest: Manifest) -> Answer:
        return _answer(database, manifest, question, limit, cursor)

    return read_tables(directory, question.tables, question.filter, read)


def read_views(
    directory: Path, report: Report, chosen: Filter = EVERYTHING, *, limit: Callable[[View], int]
) -> list[Answer]:
    """The first rows of each view of a report, all from the same run of the job.

    `limit` is the number of rows for a view.
    """
    check_filter(report, chosen)

    def read(database: DuckDBPyConnection, manifest: Manifest) -> list[Answer]:
        return [
            _answer(database, manifest, view_question(report, each, chosen), limit(each))
            for each in report.views
        ]

    return read_tables(directory, report.tables, chosen, read)


def _answer(
    database: DuckDBPyConnection,
    manifest: Manifest,
    question: Question,
    limit: int,
    cursor: str | None = None,
) -> Answer:
    digest = _digest(manifest, question)
    offset = 0 if cursor is None else _parse_cursor(cursor, digest)
    total = select_answer(database, question)
    rows = database.execute(f"{select_rows(question)} LIMIT ? OFFSET ?", [limit, offset]).fetchall()
    end = offset + len(rows)
    return Answer(
        report=question.report.name,
        view=question.name,
        title=question.title,
        columns=question.columns,
        chart=question.chart,
        rows=tuple(rows),
        total=total,
        next_cursor=f"{digest}-{end}" if end < total else None,
        filter=question.filter,
        ignored_filters=tuple(
            each
            for each in question.filter.values()
            if not any(filter_column(table, each) for table in question.tables)
        ),
        freshness=freshness_of(manifest, question.report),
    )


def select_answer(database: DuckDBPyConnection, question: Question) -> int:
    """Store the rows of a question in the temporary table of the answer; returns their number."""
    # The order of a subquery would be lost; a table keeps the order in which it was filled.
    database.execute(f"CREATE OR REPLACE TEMP TABLE {ANSWER} AS {question.sql}")
    found = database.execute(f"SELECT count(*) FROM {ANSWER}").fetchone()
    return int(found[0]) if found else 0


def select_rows(question: Question) -> str:
    """The statement that selects the rows of the temporary table, with their declared types."""
    return f"SELECT {cast_columns(question.columns)} FROM {ANSWER} ORDER BY rowid"


def _digest(manifest: Manifest, question: Question) -> str:
    """What a cursor belongs to: the files, the view and the filter."""
    files = (
        each for table in question.tables for each in files_in(manifest, table, question.filter)
    )
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
    return f"SELECT DISTINCT value FROM ({union}) WHERE value IS NOT NULL ORDER BY value"
