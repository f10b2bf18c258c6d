"""/api/reports: reports about past runs, their rows, and a run of the job."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, ClassVar

from flask import Response
from pydantic import BaseModel, Field

from bullpen.api.context import api, require_reach, write
from bullpen.api.route import ADMIN, READ, Described, Routes, as_json
from bullpen.api.schemas import MAX_PAGE_ROWS, Answer, Rows, ShortText
from bullpen.core.clock import owner_zone_name
from bullpen.core.errors import (
    BadQuery,
    Conflict,
    NoReportsYet,
    NoSpark,
    ReportsError,
    ReportsRunning,
    UnknownReport,
)
from bullpen.reports.detached_run import RunState, run_status, start_run
from bullpen.reports.manifest import read_manifest
from bullpen.reports.read.answer import find_table, find_view, read_table, read_view, tables_of
from bullpen.reports.read.catalog import describe_report, list_entries
from bullpen.reports.read.filter import Filter, filter_column, parse_day
from bullpen.reports.report import ChartKind, Table, load_report
from bullpen.reports.schema import Type, Unit

routes = Routes("reports", "Reports about past runs.")

Cell = str | int | float | bool | None


class FreshnessAnswer(Answer):
    """The time that the numbers cover."""

    covers_from: int | None = Field(description="The report is complete from this time on.")
    covers_until: int | None = Field(
        description="What happened after this time is in none of the numbers."
    )
    generated_at: int = Field(description="When the last run that changed the reports ended.")
    zone: str = Field(description="The time zone of the days.")
    error: str | None = Field(description="Why the last run could not compute the report.")
    missing: list[str] = Field(
        description="The days that the last run could not compute. Their rows are those of an"
        " earlier run. With an error and without days, all of them."
    )


class ReportAnswer(Answer):
    """A report, and what has been computed of it."""

    name: str
    title: str
    question: str = Field(description="What it answers.")
    views: list[str] = Field(description="The first one is the default.")
    tables: list[str]
    filters: list[str] = Field(description="What its rows are filtered by, besides the period.")
    rows: int = Field(description="Rows in all of its tables.")
    freshness: FreshnessAnswer | None = Field(description="Null before the first run.")
    problem: str | None = Field(
        description="Why the report of another package cannot be used; it then has only a name."
    )


class ReportList(Rows[ReportAnswer]):
    """Reports."""


class ColumnAnswer(Answer):
    """A column."""

    name: str
    type: Type
    unit: Unit | None
    description: str


class ChartAnswer(Answer):
    """How the rows of a view are drawn. The names are those of its columns."""

    kind: ChartKind
    x: str
    y: list[str]
    series: str | None


class ViewAnswer(Answer):
    """A view: a query over the tables of a report."""

    name: str
    title: str
    columns: list[ColumnAnswer]
    chart: ChartAnswer | None


class TableAnswer(Answer):
    """A table of a report. It has one row for each combination of the columns of its grain."""

    name: str
    grain: list[str]
    columns: list[ColumnAnswer]


class ReportDescription(Answer):
    """A report with the columns of its views and tables."""

    name: str
    title: str
    question: str = Field(description="What it answers.")
    views: list[ViewAnswer] = Field(description="The first one is the default.")
    tables: list[TableAnswer]
    filters: list[str] = Field(description="What its rows are filtered by, besides the period.")
    rows: int = Field(description="Rows in all of its tables.")
    freshness: FreshnessAnswer | None = Field(description="Null before the first run.")


class ReportPath(BaseModel):
    """Selects a report."""

    name: str = Field(max_length=200, description="The report's name.")


class RowsQuery(BaseModel):
    """Selects the rows of a view or of a table."""

    view: ShortText | None = Field(None, description="A view. The default is the first one.")
    table: ShortText | None = Field(None, description="A table, instead of a view.")
    since: ShortText | None = Field(
        None, description="The first day, such as `2026-11-20`, or how long ago, such as `7d`."
    )
    until: ShortText | None = Field(None, description="The last day, in the same form.")
    agent: ShortText | None = Field(None, description="Only rows of this agent.")
    team: ShortText | None = Field(None, description="Only rows of this team.")
    channel: ShortText | None = Field(None, description="Only rows of this channel.")
    limit: int = Field(100, ge=1, le=MAX_PAGE_ROWS, description="Maximum number of rows.")
    cursor: ShortText | None = Field(None, description="The `next_cursor` of the page before.")


class ReportRows(FreshnessAnswer):
    """A page of rows, and the time that they cover."""

    large: ClassVar[bool] = True

    report: str
    view: str = Field(description="The view or the table.")
    since: str | None = Field(description="The first day of the filter.")
    until: str | None = Field(description="The last day of the filter.")
    ignored_filters: list[str] = Field(
        description="Filters that were given, and by which no table of the view can be filtered."
    )
    total: int = Field(description="The number of rows on all pages.")
    rows: list[dict[str, Cell]] = Field(description="The values by column.")
    next_cursor: str | None = Field(description="Where the next page begins; null on the last one.")


class RunAnswer(Answer):
    """The latest run that was started over the API, or one that is running now."""

    state: RunState
    started_at: int | None = Field(description="Null if it was not started over the API.")
    finished_at: int | None
    error: str | None = Field(description="Why it failed.")
    hint: str | None


@routes.get("/api/reports", READ, ReportsError)
def reports() -> ReportList:
    """List the reports, and the time that they cover.

    Needs a key that reaches all agents.
    """
    require_reach(None)
    return ReportList.of(list_entries(api().settings.reports))


@routes.get("/api/reports/run", READ, ReportsError)
def run_state() -> RunAnswer:
    """Get the state of the latest run of the job that computes the reports.

    Needs a key that reaches all agents.
    """
    require_reach(None)
    return RunAnswer.from_row(run_status(api().settings))


@routes.post("/api/reports/run", ADMIN, NoSpark, ReportsRunning)
def run() -> Annotated[
    Response,
    Described(
        "The run has started. `GET /api/reports/run` has its state.",
        "application/json",
        RunAnswer.model_json_schema(mode="serialization"),
        202,
    ),
]:
    """Start the job that computes the reports, in the background.

    Needs a key that reaches all agents.
    """
    require_reach(None)
    with write() as tx:
        now = tx.now
    response = as_json(RunAnswer.from_row(start_run(api().settings, now)))
    response.status_code = 202
    return response


@routes.get("/api/reports/<name>", READ, UnknownReport, ReportsError)
def report(path: ReportPath) -> ReportDescription:
    """Get a report with its views, its tables and their columns.

    Needs a key that reaches all agents.
    """
    require_reach(None)
    found = load_report(path.name)
    state = describe_report(found, read_manifest(api().settings.reports))
    return ReportDescription.from_row(state, views=found.views, tables=found.tables)


@routes.get(
    "/api/reports/<name>/rows",
    READ,
    UnknownReport,
    NoReportsYet,
    BadQuery,
    Conflict,
    ReportsError,
)
def rows(path: ReportPath, query: RowsQuery) -> ReportRows:
    """Get rows of a view or a table of a report.

    Values of columns with the unit `ms` are durations in milliseconds, those with `time` are
    milliseconds since 1970 (UTC), and those with `share` are from 0 to 1. A key for some agents
    must give one of them as `agent`, and reads only reports by agent.
    """
    found, directory, chosen = load_report(path.name), api().settings.reports, _filter(query)
    if query.table is not None:
        if query.view is not None:
            raise BadQuery("both a view and a table are given", hint="Give one of them.")
        table = find_table(found, query.table)
        _require_reach(query, (table,))
        answer = read_table(directory, found, table, chosen, limit=query.limit, cursor=query.cursor)
    else:
        view = find_view(found, query.view)
        _require_reach(query, tables_of(found, view))
        answer = read_view(directory, found, view, chosen, limit=query.limit, cursor=query.cursor)
    return ReportRows.model_validate(answer.document())


def _require_reach(query: RowsQuery, tables: Iterable[Table]) -> None:
    """Refuse a key for some agents, unless the filter leaves only rows of one of them."""
    filtered = all(filter_column(each, "agent") is not None for each in tables)
    require_reach(query.agent if filtered else None)


def _filter(query: RowsQuery) -> Filter:
    settings = api().settings
    manifest = read_manifest(settings.reports)
    zone = owner_zone_name(settings) if manifest is None else manifest.zone
    now = api().store.clock.now()
    return Filter(
        since=None if query.since is None else parse_day(query.since, now, zone),
        until=None if query.until is None else parse_day(query.until, now, zone),
        agent=query.agent,
        team=query.team,
        channel=query.channel,
    )
