"""bullpen demo history: a month of work in an empty store, for reports and pictures."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta

import click

from bullpen.cli.command import Result, command
from bullpen.cli.demo import demo
from bullpen.cli.options import Count, Date
from bullpen.cli.output import echo
from bullpen.cli.up import migrate_database
from bullpen.core.clock import SECOND, SystemClock, format_time, get_zone, owner_zone_name
from bullpen.core.settings import Settings
from bullpen.core.text import format_count
from bullpen.ops.demo.plan import MAX_ATTEMPTS, MAX_DAYS, HistoryPlan
from bullpen.ops.demo.write import WrittenHistory, write_history
from bullpen.ops.services.programs import make_directories

DEFAULT_ATTEMPTS = 20_000
MIN_ATTEMPTS = 100


@command(demo, people_only="write a demonstration history")
@click.option(
    "--attempts",
    type=Count(MIN_ATTEMPTS, MAX_ATTEMPTS),
    default=DEFAULT_ATTEMPTS,
    show_default=True,
    help="Approximate number of runs.",
)
@click.option(
    "--days", type=Count(1, MAX_DAYS), default=30, show_default=True, help="Length in days."
)
@click.option(
    "--until", type=Date(), show_default="now", help="Last day, in the owner's time zone."
)
@click.option("--seed", type=Count(), default=1, show_default=True, help="Seed of the simulation.")
def history(settings: Settings, attempts: int, days: int, until: date | None, seed: int) -> Result:
    """Write a simulated month into an empty database.

    Ten agents in three teams answer 400 senders on four channels: with office hours, weekends,
    incidents, retries, handoffs, costs and deliveries. The reports, the dashboard and all lists
    then have something to show. The same seed and the same dates give the same rows.

    The database must be empty. Use a new home, as in the first example. Ctrl-C leaves the database
    empty again. The agents have the provider echo: nothing that they do later costs anything.

    \b
    Examples:
      BULLPEN_HOME=~/bullpen-history bullpen demo history
      bullpen demo history --attempts 1000000 --until 2026-10-31
    """
    zone = owner_zone_name(settings)
    plan = HistoryPlan.from_settings(
        settings, seed=seed, attempts=attempts, days=days, until=_end(until, zone)
    )
    if plan.since < 0:
        raise click.UsageError("the history must not begin before 1970: use a later --until")
    make_directories(settings)
    migrate_database(settings, lambda line: echo(line, err=True))
    try:
        with _progress(plan) as update:
            written = write_history(settings, plan, update)
    except KeyboardInterrupt:
        echo("\nStopped. The database is empty again.", err=True)
        sys.exit(1)
    fields = {"home": str(settings.home), "seed": seed, "since": plan.since, "until": plan.until}
    return Result({**fields, "rows": dict(written.rows)}, _describe(written, zone))


def _end(until: date | None, zone: str) -> int:
    """The end of this day, or now if that is earlier."""
    now = SystemClock().now()
    if until is None:
        return now
    midnight = datetime.combine(until, time(), get_zone(zone))
    if midnight.timestamp() * SECOND > now:
        raise click.UsageError(f"--until {until} is in the future")
    after = datetime.combine(until + timedelta(days=1), time(), get_zone(zone))
    return min(now, int(after.timestamp()) * SECOND)


@contextmanager
def _progress(plan: HistoryPlan) -> Iterator[Callable[[int], object]]:
    """A progress bar on standard error, if that is a terminal; a kill ends it as Ctrl-C does."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield lambda _: None
        return
    with click.progressbar(length=plan.until - plan.since, label="Writing", file=sys.stderr) as bar:
        yield lambda time: bar.update(time - plan.since - bar.pos)


def _describe(written: WrittenHistory, zone: str) -> Iterator[str]:
    plan, rows = written.plan, written.rows
    counted = ", ".join(
        (
            format_count(rows["attempts"], "run"),
            format_count(rows["events"], "event"),
            format_count(rows["messages"] + rows["messages_archive"], "message"),
            format_count(rows["responses"] + rows["responses_archive"], "response"),
        )
    )
    yield f"Wrote {counted},"
    yield f"from {format_time(plan.since, zone)} to {format_time(plan.until, zone)}."
    yield "Examine it with:"
    if home := os.environ.get("BULLPEN_HOME"):
        yield f"  export BULLPEN_HOME={shlex.quote(home)}"
    yield "  bullpen status"
    yield "  bullpen queue dead"
    yield "  bullpen report run && bullpen report list"
