"""Cards: a report on the overview, with its newest numbers and a line through its days."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import lru_cache
from pathlib import Path

from bullpen.api.portal.figures import SUMMED, make_series
from bullpen.core.clock import get_zone
from bullpen.core.errors import ReportsError
from bullpen.reports.manifest import Manifest
from bullpen.reports.read.answer import Answer, read_view
from bullpen.reports.read.catalog import freshness_of
from bullpen.reports.read.filter import Filter, local_day
from bullpen.reports.read.values import format_value
from bullpen.reports.report import Chart, ChartKind, Report, View, load_report

DAYS = 30
MAX_ROWS = 5000


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers of a card."""

    figure: str
    unit: str
    points: str
    """A line in a box of 100 by 30."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A report on the overview."""

    title: str
    address: str = ""
    """Empty if the report cannot be used."""
    question: str = ""
    numbers: Numbers | None = None
    problem: str = ""
    """Why there are no numbers, or why they are old."""


def make_card(directory: Path, report: Report, manifest: Manifest | None, now: int) -> Card:
    """The card of a report; a report that cannot be read has a card that says why."""
    card = Card(title=report.title, address=f"/reports/{report.name}", question=report.question)
    if manifest is None:
        return card
    freshness = freshness_of(manifest, report)
    since = local_day(now, manifest.zone) - timedelta(days=DAYS - 1)
    try:
        numbers = _read_numbers(directory, report.name, since, manifest.version)
    except ReportsError as error:
        return replace(card, problem=str(error))
    return replace(
        card, numbers=numbers, problem=freshness.describe(now) if freshness.error else ""
    )


@lru_cache(maxsize=64)
def _read_numbers(
    directory: Path, name: str, since: date, _: tuple[str, int, int]
) -> Numbers | None:
    """The numbers of the first view by day, if there is one. They change only with a run."""
    report = load_report(name)
    view = next((each for each in report.views if _is_by_day(each)), None)
    if view is None or view.chart is None:
        return None
    answer = read_view(directory, report, view, Filter(since=since), limit=MAX_ROWS)
    return _numbers(view.chart, answer) if answer.rows else None


def _is_by_day(view: View) -> bool:
    chart = view.chart
    return chart is not None and chart.x == "day" and chart.kind is not ChartKind.HEATMAP


def _numbers(chart: Chart, answer: Answer) -> Numbers:
    columns = {each.name: each for each in answer.columns}
    column = columns[chart.y[0]]
    series = make_series(chart, columns, answer.records())
    added = column.unit in SUMMED
    if chart.series is None or not added:
        # Only the first is drawn: of values that cannot be added, the largest.
        series = dict([next(iter(series.items()))])
    days: defaultdict[str, float] = defaultdict(float)
    for points in series.values():
        for day, value in points.items():
            days[str(day)] += value if isinstance(value, int | float) else 0
    values = [days[each] for each in sorted(days)]
    zone = get_zone(answer.freshness.zone)
    shown = format_value(column, sum(values) if added else values[-1], zone)
    unit = column.name.replace("_", " ")
    if not added:
        unit = f"{next(iter(series))}, {unit}, last day"
    return Numbers(shown, unit, _points(values))


def _points(values: Sequence[float]) -> str:
    if len(values) < 2:
        return ""
    top = max(values) or 1
    step = 100 / (len(values) - 1)
    return " ".join(f"{i * step:.1f},{29 - 28 * value / top:.1f}" for i, value in enumerate(values))
