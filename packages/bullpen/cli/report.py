"""bullpen report: reports about past runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from bullpen.cli.command import Result, command
from bullpen.cli.lazy import LazyGroup
from bullpen.cli.output import format_duration
from bullpen.core.clock import SystemClock
from bullpen.core.settings import Settings
from bullpen.reports.read.catalog import ReportEntry, list_entries
from bullpen.reports.read.filter import local_day
from bullpen.reports.read.values import format_number

HEADING = ("REPORT", "QUESTION", "ROWS", "FROM", "AGE", "STATE")

NOT_COMPUTED = "The reports have not been computed yet. Next: bullpen report run"
NEXT_STEPS = "Next: bullpen report show REPORT, bullpen report run"


@click.group(
    cls=LazyGroup,
    modules={
        "export": "bullpen.cli.report_export:export",
        "run": "bullpen.cli.report_run:run",
        "show": "bullpen.cli.report_show:show",
        "sql": "bullpen.cli.report_sql:sql",
    },
)
def report() -> None:
    """Compute, show and export reports about past runs.

    Reports are computed by `bullpen report run`, and read without Spark and Java.

    \b
    Examples:
      bullpen report run
      bullpen report list
      bullpen report show people --since 7d
      bullpen report export people > people.csv
    """


@command(report, listing=True)
def list_(settings: Settings) -> Result:
    """List reports, the time that they cover, and their age.

    STATE is `failed` if the last run could not compute the report. Its rows are then those of an
    earlier run.

    \b
    Example:
      bullpen report list
    """
    entries = list_entries(settings.reports)
    now = SystemClock().now()
    return Result(
        entries,
        rows=[HEADING, *(_row(each, now) for each in entries)],
        hints=_hints(entries),
        ids=(each.name for each in entries if each.problem is None),
    )


def _row(entry: ReportEntry, now: int) -> tuple[str, ...]:
    freshness = entry.freshness
    rows = begins = age = ""
    if freshness is not None and freshness.covers_until is not None:
        rows = format_number(entry.rows)
        age = format_duration(now - freshness.covers_until)
        if freshness.covers_from is not None:
            begins = f"{local_day(freshness.covers_from, freshness.zone)}"
    return (entry.name, entry.question, rows, begins, age, _state(entry))


def _state(entry: ReportEntry) -> str:
    if entry.problem is not None:
        return "not loaded"
    if entry.freshness is not None and entry.freshness.error:
        return "failed"
    if entry.freshness is None or entry.freshness.covers_until is None:
        return "not computed"
    return "computed"


def _hints(entries: Sequence[ReportEntry]) -> Iterator[str]:
    """What failed, and what to do next."""
    for each in entries:
        if each.problem is not None:
            yield f"{each.name} cannot be used: {_first_line(each.problem)}"
        elif each.freshness is not None and each.freshness.error:
            yield f"{each.name}: {_first_line(each.freshness.failure())}"
    computed = any(each.freshness is not None for each in entries)
    yield NEXT_STEPS if computed else NOT_COMPUTED


def _first_line(text: str) -> str:
    return text.partition("\n")[0]
