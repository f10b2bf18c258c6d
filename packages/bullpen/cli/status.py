"""bullpen status: services, queue, and what needs attention."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass

import click

from bullpen.cli.command import Result, command, json_requested
from bullpen.cli.options import MAX_LIMIT
from bullpen.cli.output import Ansi, echo, format_duration, print_table
from bullpen.cli.response import CLI
from bullpen.core.clock import SECOND
from bullpen.core.errors import BullpenError, UnknownService, UnsafeDirectory
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

SERVICES_HEADING = ("SERVICE", "STATE", "PID", "FOR")
NO_SERVICES = "There are no services."
CLEAR_SCREEN = Ansi("\x1b[H\x1b[2J")


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """What `bullpen status` shows of the store, at one moment."""

    agents: Sequence[JobStatus]
    queue: QueueStatus
    now: int
    unread: int
    hold: Hold | None


def read_store_status(settings: Settings) -> StoreStatus:
    """Read the status of the store in one transaction."""
    with closing(open_store(settings)) as store, store.read() as tx:
        unread = len(list_deliverable(tx, CLI, 0, MAX_LIMIT))
        return StoreStatus(list_job_statuses(tx), queue_status(tx), tx.now, unread, find_hold(tx))


def print_store_status(store: StoreStatus, last: Backup | None, every_agent: bool) -> None:
    """Print queue, upkeep and backup, a line each, and what needs a person."""
    queue = store.queue
    echo(
        f"Queue:   {queue.pending} waiting, {queue.processing} running, {queue.held} held, "
        f"{queue.dead} dead; {queue.outgoing} going out"
    )
    echo(f"Upkeep:  {_format_upkeep(store)}")
    age = "never" if last is None else f"{format_duration(store.now - last.made_at)} ago"
    echo(f"Backup:  {age}")
    for line in _next_steps(store):
        echo(line)
    if every_agent:
        echo()
        rows = [JOBS_HEADING, *(_job_row(agent, store.now) for agent in store.agents)]
        print_table(rows, "There are none.")


def _format_upkeep(store: StoreStatus) -> str:
    """The state of the system agents in one line, with the names of those that fail."""
    runs = [each.last_run_at for each in store.agents if each.last_run_at is not None]
    if not runs:
        return "has not begun yet"
    failing = [each for each in store.agents if each.last_error is not None]
    if failing:
        failures = "; ".join(f"{each.name} {_format_result(each, store.now)}" for each in failing)
        return " ".join(failures.split())
    last = format_duration(store.now - max(runs))
    return f"{len(store.agents)} system agents, all well, the last {last} ago"


def _next_steps(store: StoreStatus) -> Iterator[str]:
    for lane in store.queue.lanes:
        if lane.state != LaneState.ACTIVE:
            why = f" ({lane.reason})" if lane.reason else ""
            yield f"@{lane.agent} is {lane.state}{why}. Next: bullpen queue resume {lane.agent}"
    if store.hold is not None:
        yield f"Nothing goes out: {store.hold.reason}. Next: bullpen db release"
    if store.queue.held:
        yield "Something waits for your word. Next: bullpen queue held"
    if store.queue.dead:
        yield "Something is dead. Next: bullpen queue dead"
    if store.unread:
        count = f"{store.unread} messages wait" if store.unread > 1 else "1 message waits"
        yield f"{count} to be read by you. Next: bullpen response read"


def _job_row(agent: JobStatus, now: int) -> tuple[str, ...]:
    ran, took = agent.last_run_at, agent.last_duration
    return (
        agent.name,
        format_duration(agent.every_seconds * SECOND),
        "never" if ran is None else f"{format_duration(now - ran)} ago",
        "" if took is None else f"{took} ms",
        " ".join(_format_result(agent, now).split())[:RESULT_CHARS],
    )


def _format_result(agent: JobStatus, now: int) -> str:
    if agent.running_since is not None:
        return f"runs for {format_duration(now - agent.running_since)}"
    if agent.last_error is not None:
        return f"failed {agent.failures} times in a row: {agent.last_error}"
    return agent.last_result or ""


def service_rows(services: Sequence[Service]) -> list[tuple[str, ...]]:
    """A table of services."""
    return [
        SERVICES_HEADING,
        *(
            (
                each["name"],
                each["state"],
                str(each["pid"]) if each["pid"] else "",
                format_duration(each["seconds"] * SECOND) if each["pid"] else "",
            )
            for each in services
        ),
    ]


def print_services(services: Sequence[Service]) -> None:
    """Print a table of services."""
    print_table(service_rows(services), NO_SERVICES)


def print_down_services(settings: Settings, services: Sequence[Service]) -> None:
    """Print the last log line of each service that does not run."""
    for each in services:
        if each["state"] in DOWN_STATES:
            name = each["name"]
            lines = last_words(settings, name, 1)
            reason = f" Its last words: {lines[0]}" if lines else ""
            echo(
                f"{name} does not run.{reason}\n  Next: bullpen logs {name}; bullpen restart {name}"
            )


def last_words(settings: Settings, name: str, count: int) -> list[str]:
    """The last lines of a service's log; none if it has no log."""
    try:
        return read_log_tail(settings, name, count, settings.secrets())
    except UnknownService:
        return []


@command()
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
def status(settings: Settings, every: bool, watch: bool, seconds: float) -> Result:
    """Show what runs, and what has to be looked after. The exit status is 3 if a service is down.

    \b
    Examples:
      bullpen status
      bullpen status --json
      bullpen status --watch
    """
    if watch and not json_requested():
        _watch(settings, every, seconds)
    services = list_services(settings)
    store, error = _store_status(settings)
    healthy = services and all(each["state"] == RUNNING for each in services)
    return Result(
        _document(services, store),
        show=lambda: _print_status(settings, services, store, error, every),
        status=0 if healthy else 3,
    )


def list_services(settings: Settings) -> list[Service]:
    """The services; none if no supervisor answers."""
    supervisor = Supervisor(settings)
    try:
        return supervisor.services() if supervisor.alive() else []
    except UnsafeDirectory as error:
        echo(f"Error: {error}\n  {error.hint}", err=True)
        return []


def _watch(settings: Settings, every: bool, seconds: float) -> None:
    while True:
        services = list_services(settings)
        store, error = _store_status(settings)
        echo(CLEAR_SCREEN if sys.stdout.isatty() else "", nl=False)
        _print_status(settings, services, store, error, every)
        time.sleep(seconds)


def _document(services: list[Service], store: StoreStatus | None) -> dict[str, object]:
    return {
        "services": services,
        "queue": None if store is None else _queue_fields(store.queue),
        "system_agents": None if store is None else [asdict(each) for each in store.agents],
        "unread": None if store is None else store.unread,
        "held_back": None if store is None or store.hold is None else asdict(store.hold),
    }


def _queue_fields(queue: QueueStatus) -> dict[str, object]:
    lanes = [
        {
            "agent": each.agent,
            "state": each.state,
            "reason": each.reason,
            "pending": each.pending,
            "processing": each.processing,
            # The row keeps the worker of its last claim; a lease tells that it has one now.
            "worker": each.claimed_by if each.lease_expires_at else None,
            "lease_expires_at": each.lease_expires_at,
        }
        for each in queue.lanes
    ]
    return {**asdict(queue), "lanes": lanes}


def _store_status(settings: Settings) -> tuple[StoreStatus | None, str]:
    """The status of the store; or None and the error."""
    try:
        return read_store_status(settings), ""
    except BullpenError as error:
        return None, f"{error} ({error.hint})"


def _print_status(
    settings: Settings, services: list[Service], store: StoreStatus | None, error: str, every: bool
) -> None:
    if services:
        print_services(services)
        print_down_services(settings, services)
        echo(f"The API is at {api_url(settings)}\n")
    else:
        echo("Bullpen does not run. Next: bullpen up\n")
    if store is None:
        echo(f"The store is not known: {error}")
    else:
        print_store_status(store, last_backup(settings), every)
