"""The pages of the reports: an overview, and a page for each report with its charts and tables."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Annotated
from urllib.parse import urlencode

from flask import Response
from pydantic import BaseModel, Field, field_validator

from bullpen.api.context import api, caller, require_reach
from bullpen.api.portal.cards import DAYS, Card, make_card
from bullpen.api.portal.figures import make_figure
from bullpen.api.portal.page import render_page
from bullpen.api.route import READ, Described, Routes
from bullpen.core.access.keys import Scope
from bullpen.core.clock import HOUR, format_time, get_zone
from bullpen.core.errors import UnknownReport
from bullpen.reports.manifest import Manifest, read_manifest
from bullpen.reports.read.answer import (
    Answer,
    find_view,
    read_options,
    read_views,
    view_question,
)
from bullpen.reports.read.catalog import Freshness, freshness_of, require_manifest
from bullpen.reports.read.export import Format, write_rows
from bullpen.reports.read.filter import Filter, filters_of, local_day
from bullpen.reports.read.values import format_duration, format_value
from bullpen.reports.report import ChartKind, Report, View, find_reports, load_report
from bullpen.reports.schema import Column, Type, Unit

routes = Routes("pages", "Pages for a browser.")

Html = Annotated[Response, Described("The page.", "text/html", {"type": "string"})]

ALL = "all"
PERIODS = {"7": "7 days", "30": "30 days", "90": "90 days", "365": "A year", ALL: "All"}
TABLE_ROWS = 100
FIGURE_ROWS = 5000
OLD_AFTER = 3 * HOUR
"""The service computes the reports each hour; after three, something is wrong."""


class Chosen(BaseModel):
    """The filters of a page; they are in its address."""

    period: str = Field(str(DAYS), description="`7`, `30`, `90` or `365` days, or `all`.")
    since: date | None = Field(None, description="The first day; replaces the period.")
    until: date | None = Field(None, description="The last day.")
    agent: str = ""
    team: str = ""
    channel: str = ""

    @field_validator("since", "until", mode="before")
    @classmethod
    def empty_is_none(cls, value: object) -> object:
        """Forms send an empty text for a day that was not chosen."""
        return value or None

    def filter(self, report: Report, today: date) -> Filter:
        """The filter for a report; a filter that it does not have is left out."""
        since = self.since
        if since is None and self.until is None and self.period in PERIODS and self.period != ALL:
            since = today - timedelta(days=int(self.period) - 1)
        known = filters_of(report)
        return Filter(
            since=since,
            until=self.until,
            agent=self.agent or None if "agent" in known else None,
            team=self.team or None if "team" in known else None,
            channel=self.channel or None if "channel" in known else None,
        )


class ReportName(BaseModel):
    """The name of a report."""

    name: str


class ViewName(ReportName):
    """The names of a report and of one of its views."""

    view: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Age:
    """How old the numbers of a page are, as the page says it."""

    freshness: Freshness | None
    covers_from: str = ""
    covers_until: str = ""
    generated_at: str = ""
    ago: str = ""
    old: bool = False
    failure: str = ""
    can_run: bool = False


@dataclass(frozen=True, slots=True)
class Heading:
    """The heading of a column."""

    label: str
    description: str
    kind: str
    """The class of its cells: `number` or `text`."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A filter with its options."""

    name: str
    options: Sequence[str]
    chosen: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A view on the page of its report."""

    name: str
    title: str
    columns: Sequence[Heading]
    rows: Sequence[Sequence[tuple[str, str]]]
    """The class and the text of each cell."""
    total: int
    ignored: Sequence[str]
    """Filters that were chosen, but that this view does not have."""
    figure: str | None
    """The figure as JSON."""
    is_heatmap: bool


@routes.get("/reports", READ)
def overview() -> Html:
    """Show all reports with their newest numbers."""
    manifest, now = _manifest(), api().store.clock.now()
    reports, problems = find_reports()
    directory = api().settings.reports
    cards = [make_card(directory, each, manifest, now) for each in reports]
    cards += [
        Card(title=name, problem=f"This report cannot be used: {reason}")
        for name, reason in sorted(problems.items())
    ]
    oldest = None if manifest is None else _oldest(manifest, reports)
    return render_page("reports.html", section="reports", days=DAYS, age=_age(oldest), cards=cards)


@routes.get("/reports/<name>", READ, UnknownReport)
def show(path: ReportName, query: Chosen) -> Html:
    """Show a report: its charts and tables."""
    report = load_report(path.name)
    manifest = _manifest()
    sections: Sequence[Section] = ()
    choices: list[Choice] = []
    if manifest is not None:
        directory, version = api().settings.reports, manifest.version
        chosen = query.filter(report, _today(manifest))
        sections = _read_sections(directory, report.name, chosen, version)
        options = _read_options(directory, report.name, version)
        choices = [Choice(each, options[each], getattr(query, each)) for each in options]
    return render_page(
        "report.html",
        section="reports",
        report=report,
        address=f"/reports/{report.name}",
        age=_age(None if manifest is None else freshness_of(manifest, report)),
        periods=PERIODS,
        chosen=query,
        choices=choices,
        sections=sections,
        query=urlencode(query.model_dump(mode="json", exclude_defaults=True)),
        drawn=any(each.figure for each in sections),
    )


@routes.get("/reports/<name>/<view>.csv", READ, UnknownReport)
def csv(path: ViewName, query: Chosen) -> Annotated[Response, Described("The rows.", "text/csv")]:
    """Get all rows of a view as CSV."""
    report = load_report(path.name)
    view = find_view(report, path.view)
    manifest = require_manifest(_manifest())
    question = view_question(report, view, query.filter(report, _today(manifest)))
    with tempfile.NamedTemporaryFile(prefix="bullpen-", suffix=".csv") as file:
        write_rows(api().settings.reports, question, Format.CSV, Path(file.name))
        response = Response(file.read(), mimetype="text/csv")
    name = f"{report.name}-{view.name}.csv"
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _manifest() -> Manifest | None:
    require_reach(None)  # the numbers are those of all agents
    return read_manifest(api().settings.reports)


def _today(manifest: Manifest) -> date:
    return local_day(api().store.clock.now(), manifest.zone)


def _oldest(manifest: Manifest, reports: Sequence[Report]) -> Freshness | None:
    """The freshness of the computed report that covers least; its card has its error."""
    found = [freshness_of(manifest, each) for each in reports]
    computed = [each for each in found if each.covers_until is not None]
    oldest = min(computed, key=lambda each: each.covers_until or 0, default=None)
    return None if oldest is None else replace(oldest, error=None)


def _age(freshness: Freshness | None) -> Age:
    can_run = caller().has_scope(Scope.ADMIN)
    if freshness is None:
        return Age(freshness=None, can_run=can_run)
    if freshness.covers_until is None:
        return Age(freshness=None, failure=freshness.failure(), can_run=can_run)
    since = freshness.covers_from
    passed = api().store.clock.now() - freshness.covers_until
    return Age(
        freshness=freshness,
        covers_from="" if since is None else format_time(since, freshness.zone),
        covers_until=format_time(freshness.covers_until, freshness.zone),
        generated_at=format_time(freshness.generated_at, freshness.zone),
        ago=format_duration(passed),
        failure=freshness.failure(),
        old=passed >= OLD_AFTER,
        can_run=can_run,
    )


@lru_cache(maxsize=32)
def _read_sections(
    directory: Path, name: str, chosen: Filter, _: tuple[str, int, int]
) -> Sequence[Section]:
    """The views of a report with these filters. They change only with a run."""
    report = load_report(name)
    answers = read_views(directory, report, chosen, limit=_rows_of)
    return [_section(view, answer) for view, answer in zip(report.views, answers, strict=True)]


def _section(view: View, answer: Answer) -> Section:
    figure = make_figure(view, answer.records())
    zone = get_zone(answer.freshness.zone)
    headings = [_heading(each) for each in view.columns]
    return Section(
        name=view.name,
        title=view.title,
        columns=headings,
        rows=[
            [
                (heading.kind, format_value(column, value, zone))
                for heading, column, value in zip(headings, view.columns, row, strict=True)
            ]
            for row in answer.rows[:TABLE_ROWS]
        ],
        total=answer.total,
        ignored=answer.ignored_filters,
        figure=None if figure is None else json.dumps(asdict(figure)),
        is_heatmap=view.chart is not None and view.chart.kind is ChartKind.HEATMAP,
    )


def _rows_of(view: View) -> int:
    """How many rows of a view a page needs."""
    return TABLE_ROWS if view.chart is None else FIGURE_ROWS


@lru_cache(maxsize=64)
def _read_options(directory: Path, name: str, _: tuple[str, int, int]) -> dict[str, list[str]]:
    """The values of each filter of a report. They change only with a run."""
    return read_options(directory, load_report(name))


def _heading(column: Column) -> Heading:
    is_number = column.type in (Type.INTEGER, Type.NUMBER) and column.unit is not Unit.TIME
    label = column.name.replace("_", " ")
    return Heading(label, column.description, "number" if is_number else "text")
