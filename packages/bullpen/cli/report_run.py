"""bullpen report run: compute the reports."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from datetime import date
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from bullpen.cli.command import Result, command, json_requested
from bullpen.cli.options import Date
from bullpen.cli.output import echo, format_count, join, print_json, style
from bullpen.core.clock import format_time, owner_zone_name
from bullpen.core.errors import NoSpark, ReportsDamaged
from bullpen.core.settings import Settings
from bullpen.core.store.open import open_store

if TYPE_CHECKING:
    from bullpen.reports.job.progress import Outcome, Progress, Tell
    from bullpen.reports.job.run import Request

DEGRADED = 3
TERMINATED = 128 + signal.SIGTERM
HEADING = ("REPORT", "DAYS", "ROWS", "TIME")
FACTS = {"attempts": "run", "events": "event"}
"""What a fact is called, by table."""


@command(people_only="compute reports")
@click.option("--again", is_flag=True, help="Delete all facts and results, and start again.")
@click.option(
    "--from",
    "since",
    type=Date(),
    help="Compute the days from this one on again.",
)
@click.option("--follow", is_flag=True, help="Compute again every minute until Ctrl-C.")
@click.option("--verbose", is_flag=True, help="Print the log of Spark.")
def run(
    settings: Settings, again: bool, since: date | None, follow: bool, verbose: bool
) -> Result | None:
    """Compute the reports from new runs and events.

    The job copies new runs and events to files, and computes the days that they belong to. If
    nothing is new, it ends at once. A run that fails changes nothing: the reports stay as they
    are. The service `reports` does the same every hour.

    --from computes days again from the copied facts. --again copies everything from the database;
    days that the database no longer has are lost.

    Exit status 3: some reports could not be computed.

    \b
    Examples:
      bullpen report run
      bullpen report run --from 2026-11-01
      bullpen report run --follow
    """
    if again and since is not None:
        raise click.UsageError("give --again or --from, not both")
    if missing := [each for each in ("pyspark", "pyarrow") if find_spec(each) is None]:
        raise NoSpark(f"there is no package {' or '.join(missing)}")
    from bullpen.reports.job.run import Request

    request = Request(again=again, since=since)
    with _ending_at_sigterm(0 if follow else TERMINATED):
        if follow:
            _follow(settings, request, verbose=verbose)
            return None
        return _run_once(settings, request, verbose=verbose)


def _run_once(settings: Settings, request: Request, *, verbose: bool) -> Result:
    from bullpen.reports.job.run import run_job
    from bullpen.reports.spark.session import open_session

    with closing(open_store(settings)) as store:
        outcome = run_job(
            store,
            lambda small: open_session(
                settings, small=small, verbose=verbose, record=_recorder(settings, small=small)
            ),
            request,
            tell=_printer(),
        )
    return _result(outcome, settings)


def _recorder(settings: Settings, *, small: bool) -> Callable[[], None] | None:
    """Return what tells of the class archive, if this run is to write it."""
    from bullpen.reports.manifest import read_manifest
    from bullpen.reports.spark.class_archive import is_worth_recording

    try:
        manifest = read_manifest(settings.reports)
    except ReportsDamaged:  # --again replaces it
        manifest = None
    if not is_worth_recording(small=small, runs=manifest.run if manifest else 0):
        return None
    return lambda: echo("Preparing faster starts of Spark. This happens once.", err=True)


def _follow(settings: Settings, request: Request, *, verbose: bool) -> None:
    from bullpen.reports.job.follow import follow

    as_json = json_requested()

    def show(outcome: Outcome) -> None:
        if as_json:
            print_json(_document(outcome))
        elif outcome.changed:
            for line in _lines(outcome, settings):
                echo(line)

    with closing(open_store(settings)) as store:
        follow(store, request, show, tell=_printer(), verbose=verbose)


@contextmanager
def _ending_at_sigterm(status: int) -> Iterator[None]:
    """Leave every block at SIGTERM, which stops Spark and deletes its files."""
    previous = signal.signal(signal.SIGTERM, lambda *_: sys.exit(status))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _printer() -> Tell:
    """Prints the steps of a run on standard error."""
    silent = json_requested()

    def tell(progress: Progress) -> None:
        if not silent and (line := _describe(progress)):
            echo(line, err=True)

    return tell


def _describe(progress: Progress) -> str:
    """A step in one line; empty if it is not worth one."""
    from bullpen.reports.job.progress import Step

    match progress.step:
        case Step.LANDED:
            return f"Copied {format_count(progress.rows, f'new {FACTS[progress.name]}')}."
        case Step.REPAIRING:
            return f"Copying {progress.name} of {progress.text} again: the file is damaged."
        case Step.COMPACTING:
            return f"Merging the files of {progress.name} of {progress.text}."
        case Step.STARTING:
            return "Starting Spark."
        case Step.COMPUTING:
            days = "all days" if progress.days is None else format_count(progress.days, "day")
            return f"Computing {progress.name}, {days}."
        case Step.FAILED:
            return join(style("failed", fg="red"), f" {progress.name}: {progress.text}")
        case Step.POSTPONED:
            return f"Trying again in a minute: {progress.text}."
        case Step.LANDING | Step.COMPUTED | Step.SAVING | Step.SAVED:
            return ""


def _result(outcome: Outcome, settings: Settings) -> Result:
    return Result(
        _document(outcome),
        _lines(outcome, settings),
        rows=[HEADING, *_rows(outcome)] if outcome.reports else None,
        notes=_notes(outcome),
        status=DEGRADED if outcome.failed else 0,
    )


def _document(outcome: Outcome) -> dict[str, object]:
    return {**asdict(outcome), "failed": [each.name for each in outcome.failed]}


def _lines(outcome: Outcome, settings: Settings) -> Iterator[str]:
    if outcome.covers_until is None:
        yield "No runs or events could be read yet."
        return
    until = format_time(outcome.covers_until, owner_zone_name(settings))
    new = "" if outcome.changed else "Nothing is new. "
    yield f"{new}The reports cover everything until {until} ({outcome.seconds:.1f} s)."


def _rows(outcome: Outcome) -> Iterator[tuple[str, ...]]:
    for each in outcome.reports:
        days = "all" if each.days is None else str(each.days)
        rows: str = style("failed", fg="red") if each.error else str(each.rows)
        yield each.name, days, rows, f"{each.seconds:.1f} s"


def _notes(outcome: Outcome) -> Iterator[str]:
    for table in outcome.waiting_for:
        yield (
            f"The newest rows of {table} are missing: a transaction has been open for too long."
            " The next run reads them."
        )
    for each in outcome.failed:
        yield f"{each.name} was not computed: {each.error}"
