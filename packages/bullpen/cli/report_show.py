"""bullpen report show: a chart and a table of a report."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator

import click

from bullpen.cli.command import Result, command, json_requested
from bullpen.cli.options import limit_option
from bullpen.cli.output import join, style
from bullpen.cli.report_options import filter_options, parse_filter, report_argument
from bullpen.core.clock import SystemClock, get_zone
from bullpen.core.settings import Settings
from bullpen.reports.read.answer import Answer, find_table, find_view, read_table, read_view
from bullpen.reports.read.text_chart import ASCII, UNICODE, Canvas, Symbols, draw_chart
from bullpen.reports.read.values import format_value
from bullpen.reports.report import Report, load_report
from bullpen.reports.schema import Type, Unit

MAX_CHART_ROWS = 20_000
"""How many rows a chart is drawn from."""

DEFAULT_PERIOD = "30d"


@command(name="show")
@report_argument
@click.option("--view", metavar="NAME", help="View of the report. The first one is the default.")
@click.option("--table", metavar="NAME", help="Table of the report, instead of a view.")
@filter_options(DEFAULT_PERIOD)
@limit_option()
def show(
    settings: Settings,
    name: str,
    view: str | None,
    table: str | None,
    limit: int,
    **filters: str | None,
) -> Result:
    """Show a report as a chart and a table.

    It says until when its numbers are complete. The views and filters of each report:
    bullpen report list --json

    \b
    Examples:
      bullpen report show people
      bullpen report show people --view days --since 7d
      bullpen report show people --channel telegram --json
    """
    if view is not None and table is not None:
        raise click.UsageError("give --view or --table, not both")
    report = load_report(name)
    chosen = parse_filter(settings, **filters)
    rows = limit if json_requested() else MAX_CHART_ROWS
    if table is not None:
        answer = read_table(settings.reports, report, find_table(report, table), chosen, limit=rows)
    else:
        answer = read_view(settings.reports, report, find_view(report, view), chosen, limit=rows)
    return Result(
        answer.document(),
        _lines(answer),
        rows=_table(answer, limit) if answer.rows else None,
        hints=_hints(report, answer, limit),
    )


def _lines(answer: Answer) -> Iterator[str]:
    """The title, the period, the age and the chart."""
    yield join(style(answer.title, bold=True), _describe_filter(answer))
    yield answer.freshness.describe(SystemClock().now())
    if not answer.rows:
        yield ""
        yield "No rows in this period."
        return
    if answer.chart is not None:
        zone = get_zone(answer.freshness.zone)
        canvas = Canvas(shutil.get_terminal_size().columns, _symbols(), zone)
        if lines := draw_chart(answer.chart, answer.columns, answer.rows, canvas):
            yield ""
            yield from lines
    yield ""


def _symbols() -> Symbols:
    """Unicode, unless the terminal cannot print it."""
    try:
        UNICODE.bar.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return UNICODE


def _describe_filter(answer: Answer) -> str:
    chosen = answer.filter
    parts = []
    if chosen.since is not None or chosen.until is not None:
        begins = "the beginning" if chosen.since is None else str(chosen.since)
        parts.append(f"{begins} to {chosen.until or 'now'}")
    parts += [
        f"{name} {value}"
        for name, value in chosen.values().items()
        if name not in answer.ignored_filters
    ]
    return f", {', '.join(parts)}" if parts else ""


def _table(answer: Answer, limit: int) -> list[tuple[str, ...]]:
    zone = get_zone(answer.freshness.zone)
    heading = tuple(each.name.replace("_", " ").upper() for each in answer.columns)
    rows = answer.rows[-limit:] if _newest_last(answer) else answer.rows[:limit]
    return [
        heading,
        *(
            tuple(
                format_value(column, value, zone)
                for column, value in zip(answer.columns, row, strict=True)
            )
            for row in rows
        ),
    ]


def _newest_last(answer: Answer) -> bool:
    """Whether the rows are in order of time, so that the last ones matter most."""
    first = answer.columns[0]
    if first.type is not Type.DATE and first.unit is not Unit.TIME:
        return False
    begin, end = answer.rows[0][0], answer.rows[-1][0]
    return begin is not None and end is not None and str(begin) <= str(end)


def _hints(report: Report, answer: Answer, limit: int) -> Iterator[str]:
    for name in answer.ignored_filters:
        yield f"This view cannot be filtered by --{name}: its rows are of every {name}."
    if answer.total > limit:
        which = "last" if _newest_last(answer) else "first"
        yield f"The {which} {limit} of {answer.total} rows. Use --limit to show more."
    if others := [each.name for each in report.views if each.name != answer.view]:
        yield f"Other views: {', '.join(others)}. Use --view to show one."
