"""Report: a question about past runs, the tables that Spark computes for it, and views of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from bullpen.core.errors import ReportsError, UnknownReport
from bullpen.core.registry import REPORTS, ReportInfo
from bullpen.reports.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TABLE_NAME = re.compile("[a-z0-9][a-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True)
class Facts:
    """What a report is computed from: facts of the days to compute, and of those around them.

    Each frame has the columns of `facts.tables`, and `day` (a date) and `hour` (0 to 23): when the
    run finished or the event happened, in the owner's time zone.
    """

    attempts: DataFrame
    events: DataFrame
    zone: str
    """The owner's time zone, such as `Europe/Berlin`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of a report. It has one row for each combination of the columns of its grain."""

    name: str
    grain: tuple[str, ...]
    """The first is `day`, a date in the owner's time zone."""
    columns: Schema
    transform: Callable[[Facts], DataFrame]
    """Computes all days of the facts; the job keeps the days that it asked for."""


class ChartKind(StrEnum):
    """How a view is drawn."""

    LINE = "line"
    BAR = "bar"
    STACKED = "stacked"
    """Bars on top of each other."""
    HEATMAP = "heatmap"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """How the rows of a view are drawn. The names are columns of the view."""

    kind: ChartKind
    x: str
    y: tuple[str, ...]
    """The values; of a heatmap, the second axis."""
    series: str | None = None
    """One line or stack for each value of this column; of a heatmap, the column of its values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """An answer that people look at: a query over the report's tables, and its chart.

    The query is DuckDB's SQL. The tables in it contain only the rows that the filters selected.
    """

    name: str
    title: str
    sql: str
    columns: Schema
    chart: Chart | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A report."""

    name: str
    title: str
    question: str
    """What it answers, one sentence with a question mark."""
    facts: tuple[str, ...]
    """The fact tables that it reads: `attempts`, `events`."""
    tables: tuple[Table, ...]
    """The first one has the report's name."""
    views: tuple[View, ...]
    """The first one is shown where no view is named."""
    filters: tuple[str, ...] = ("agent",)
    """Columns that people filter by; a table without the column is not filtered by it."""


def load_report(name: str) -> Report:
    """The report of this name, built-in or of another package."""
    if name in REPORTS.built_in:
        return _load(REPORTS.built_in[name])
    reports, problems = find_reports()
    for each in reports:
        if each.name == name:
            return each
    if name in problems:
        raise UnknownReport(f"the report {name} cannot be used: {problems[name]}")
    raise UnknownReport(f"there is no report {name!r}")


def list_reports() -> list[Report]:
    """Every report that can be used: the built-in ones, then those of other packages by name."""
    return find_reports()[0]


def find_reports() -> tuple[list[Report], dict[str, str]]:
    """The reports that can be used, and why the others cannot, by name."""
    found: list[Report] = []
    problems = {each.name: each.reason for each in REPORTS.problems()}
    for info in (*REPORTS.built_in.values(), *REPORTS.plugins()):
        try:
            report = _load(info)
            _check_tables(report, found)
        except ReportsError as error:
            problems.setdefault(info.name, str(error))
        else:
            found.append(report)
    return found, problems


def _load(info: ReportInfo) -> Report:
    """The report of an entry; raises ReportsError if it cannot be used."""
    try:
        found: object = resolve_name(info.factory)
    except (Exception, SystemExit) as error:  # the module of another package may do anything
        raise ReportsError(f"{type(error).__name__}: {error}") from error
    if not isinstance(found, Report):
        raise ReportsError(f"{info.factory} is not a Report")
    _check_report(found, info.name)
    return found


def _check_report(report: Report, name: str) -> None:
    """Refuse a report on which every reader would fail."""
    if report.name != name:
        raise ReportsError(f"its name is {report.name!r}, and not that of its entry")
    if not report.tables or not report.views:
        raise ReportsError("it needs a table and a view")
    for table in report.tables:
        if not _TABLE_NAME.fullmatch(table.name):
            raise ReportsError(f"{table.name!r} is not a name of a table")
    for view in report.views:
        _check_chart(view)


def _check_chart(view: View) -> None:
    """Refuse a chart of columns that the view does not have."""
    if view.chart is None:
        return
    known = {each.name for each in view.columns}
    series = () if view.chart.series is None else (view.chart.series,)
    for name in (view.chart.x, *view.chart.y, *series):
        if name not in known:
            raise ReportsError(f"the chart of the view {view.name} has no column {name!r}")


def _check_tables(report: Report, others: Sequence[Report]) -> None:
    """Refuse tables that another report has."""
    taken = {table.name: each.name for each in others for table in each.tables}
    for table in report.tables:
        if table.name in taken:
            raise ReportsError(f"table {table.name} belongs to the report {taken[table.name]}")
