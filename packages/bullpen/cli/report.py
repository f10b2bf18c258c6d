"""bullpen report: reports about past runs."""

from __future__ import annotations

import click

from bullpen.cli.command import Result, command
from bullpen.cli.lazy import LazyGroup
from bullpen.cli.output import format_duration
from bullpen.core.clock import SystemClock
from bullpen.core.settings import Settings
from bullpen.reports.read.filter import local_day
from bullpen.reports.read.overview import ReportState, describe_reports
from bullpen.reports.read.values import format_number

HEADING = ("REPORT", "QUESTION", "ROWS", "FROM", "AGE")

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

    \b
    Example:
      bullpen report list
    """
    reports = describe_reports(settings.reports)
    computed = any(each.freshness is not None for each in reports)
    now = SystemClock().now()
    return Result(
        reports,
        rows=[HEADING, *(_row(each, now) for each in reports)],
        hints=[NEXT_STEPS if computed else NOT_COMPUTED],
        ids=(each.name for each in reports),
    )


def _row(state: ReportState, now: int) -> tuple[str, ...]:
    freshness = state.freshness
    if freshness is None or freshness.covers_until is None:
        return (state.name, state.question, "", "", "not computed")
    begins = freshness.covers_from
    return (
        state.name,
        state.question,
        format_number(state.rows),
        "" if begins is None else f"{local_day(begins, freshness.zone)}",
        format_duration(now - freshness.covers_until),
    )
