"""bullpen status: services, queue, and what needs attention."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass

import click

from bullpen.cli.output import MAX_LIMIT, as_json, format_duration, print_table
from bullpen.cli.response import CLI
from bullpen.core.clock import SECOND
from bullpen.core.errors import BullpenError, UnknownService
from bullpen.core.inspect.queue import QueueStatus, queue_status
from bullpen.core.inspect.responses import list_deliverable
from bullpen.core.logs import read_log_tail
from bullpen.core.maintenance.jobs import JobStatus, list_job_statuses
from bullpen.core.network import api_url
from bullpen.core.outbox.hold import Hold, find_hold
from bullpen.core.settings import Settings
from bullpen.core.states import LaneState
from bullpen.core.store.open import open_store
from bullpen.ops.backup.create import Backup, last_backup
from bullpen.ops.services.supervisor import DOWN_STATES, RUNNING, Service, Supervisor

JOBS_HEADING = ("SYSTEM AGENT", "EVERY", "LAST RUN", "TOOK", "RESULT")
RESULT_CHARS = 100


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """The queue, what is unread, what is held back, what each system agent did, and the moment."""

    agents: Sequence[JobStatus]
    queue: QueueStatus
    now: int
    unread: int
    hold: Hold | None


def read_store_status(settings: Settings) -> StoreStatus:
    """Look at the store."""
    with closing(open_store(settings)) as store, store.read() as tx:
        unread = len(list_deliverable(tx, CLI, 0, MAX_LIMIT))
        return StoreStatus(list_job_statuses(tx), queue_status(tx), tx.now, unread, find_hold(tx))


def print_store_status(found: StoreStatus, last: Backup | None, every_agent: bool) -> None:
    """Print the queue, the upkeep and the backups in a line each, and what asks for a person."""
    queue = found.queue
    click.echo(
        f"Queue:   {queue.pending} waiting, {queue.processing} running, {queue.held} held, "
        f"{queue.dead} dead; {queue.outgoing} going out"
    )
    click.echo(f"Upkeep:  {_upkeep(found)}")
    kept = "never" if last is None else f"{format_duration(found.now - last.made_at)} ago"
    click.echo(f"Backup:  {kept}")
    for line in _for_people(found):
        click.echo(line)
    if every_agent:
        click.echo()
        rows = [JOBS_HEADING, *(_row(agent, found.now) for agent in found.agents)]
        print_table(rows, "There are none.")


def _upkeep(found: StoreStatus) -> str:
    """How the system agents do, in a line; those that fail by name."""
    ran = [each.last_run_at for each in found.agents if each.last_run_at is not None]
    if not ran:
        return "has not begun yet"
    failing = [each for each in found.agents if each.last_error is not None]
    if failing:
        said = "; ".join(f"{each.name} {_result(each, found.now)}" for each in failing)
        return " ".join(said.split())
    last = format_duration(found.now - max(ran))
    return f"{len(found.agents)} system agents, all well, the last {last} ago"


def _for_people(found: StoreStatus) -> Iterator[str]:
    for lane in found.queue.lanes:
        if lane.state != LaneState.ACTIVE:
            why = f" ({lane.reason})" if lane.reason else ""
            yield f"@{lane.agent} is {lane.state}{why}. Next: bullpen queue resume {lane.agent}"
    if found.hold is not None:
        yield f"Nothing goes out: {found.hold.reason}. Next: bullpen db release"
    if found.queue.held:
        yield "Something waits for your word. Next: bullpen queue held"
    if found.queue.dead:
        yield "Something is dead. Next: bullpen queue dead"
    if found.unread:
        count = f"{found.unread} messages wait" if found.unread > 1 else "1 message waits"
        yield f"{count} to be read by you. Next: bullpen response read"


def _row(agent: JobStatus, now: int) -> tuple[str, ...]:
    ran, took = agent.last_run_at, agent.last_duration
    return (
        agent.name,
        format_duration(agent.every_seconds * SECOND),
        "never" if ran is None else f"{format_duration(now - ran)} ago",
        "" if took is None else f"{took} ms",
        " ".join(_result(agent, now).split())[:RESULT_CHARS],
    )


def _result(agent: JobStatus, now: int) -> str:
    if agent.running_since is not None:
        return f"runs for {format_duration(now - agent.running_since)}"
    if agent.last_error is not None:
        return f"failed {agent.failures} times in a row: {agent.last_error}"
    return agent.last_result or ""


SERVICES_HEADING = ("SERVICE", "STATE", "PID", "FOR")


def print_services(services: Sequence[Service]) -> None:
    """A line each."""
    rows = [
        (
            each["name"],
            each["state"],
            str(each["pid"]) if each["pid"] else "",
            format_duration(each["seconds"] * SECOND) if each["pid"] else "",
        )
        for each in services
    ]
    print_table([SERVICES_HEADING, *rows], "There are no services.")


def print_last_lines(settings: Settings, services: Sequence[Service]) -> None:
    """What those said last that do not run."""
    for each in services:
        if each["state"] in DOWN_STATES:
            _say_why(settings, each)


def _say_why(settings: Settings, service: Service) -> None:
    name = service["name"]
    words = last_words(settings, name, 1)
    said = f" Its last words: {words[0]}" if words else ""
    click.echo(f"{name} does not run.{said}\n  Next: bullpen logs {name}; bullpen restart {name}")


def last_words(settings: Settings, name: str, count: int) -> list[str]:
    """The last lines of a service's log; none where it has none."""
    try:
        return read_log_tail(settings, name, count, settings.secrets())
    except UnknownService:
        return []


CLEAR_SCREEN = "\x1b[H\x1b[2J"


@click.command()
@click.option("--all", "-a", "every", is_flag=True, help="Show each system agent as well.")
@click.option("--watch", "-w", is_flag=True, help="Show it again and again, until Ctrl-C.")
@click.option(
    "--interval",
    "seconds",
    type=click.FloatRange(0.2, 3600),
    default=2.0,
    show_default=True,
    help="Seconds between two looks.",
)
@as_json
@click.pass_obj
def status(settings: Settings, every: bool, watch: bool, seconds: float, as_json: bool) -> None:
    """Show what runs, and what has to be looked after. The exit status is 3 if a service is down.

    \b
    Examples:
      bullpen status
      bullpen status --json
      bullpen status --watch
    """
    if watch and not as_json:
        _watch(settings, every, seconds)
    services = list_services(settings)
    found, why = _store_status(settings)
    if as_json:
        click.echo(json.dumps(_document(services, found)))
    else:
        _show(settings, services, found, why, every)
    if not services or any(each["state"] != RUNNING for each in services):
        sys.exit(3)


def list_services(settings: Settings) -> list[Service]:
    """The services; none where no supervisor answers."""
    supervisor = Supervisor(settings)
    return supervisor.services() if supervisor.alive() else []


def _watch(settings: Settings, every: bool, seconds: float) -> None:
    while True:
        services = list_services(settings)
        found, why = _store_status(settings)
        click.echo(CLEAR_SCREEN if sys.stdout.isatty() else "", nl=False)
        _show(settings, services, found, why, every)
        time.sleep(seconds)


def _document(services: list[Service], found: StoreStatus | None) -> dict[str, object]:
    return {
        "services": services,
        "queue": None if found is None else asdict(found.queue),
        "system_agents": None if found is None else [asdict(each) for each in found.agents],
        "unread": None if found is None else found.unread,
        "held_back": None if found is None or found.hold is None else asdict(found.hold),
    }


def _store_status(settings: Settings) -> tuple[StoreStatus | None, str]:
    """What it has to say; nothing, and why, without a database."""
    try:
        return read_store_status(settings), ""
    except BullpenError as error:
        return None, f"{error} ({error.hint})"


def _show(
    settings: Settings, services: list[Service], found: StoreStatus | None, why: str, every: bool
) -> None:
    if services:
        print_services(services)
        print_last_lines(settings, services)
        click.echo(f"The API is at {api_url(settings)}\n")
    else:
        click.echo("Bullpen does not run. Next: bullpen up\n")
    if found is None:
        click.echo(f"The store is not known: {why}")
    else:
        print_store_status(found, last_backup(settings), every)
