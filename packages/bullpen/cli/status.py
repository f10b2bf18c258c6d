"""bullpen status: services, queue, and pending actions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass

import click

from bullpen.cli.command import Result, command, json_requested
from bullpen.cli.errors import print_error
from bullpen.cli.options import MAX_LIMIT, Amount
from bullpen.cli.output import (
    echo,
    format_count,
    format_duration,
    format_state,
    print_table,
    style,
    wrap,
)
from bullpen.cli.response import CLI
from bullpen.cli.watch import WATCH_SECONDS, watch
from bullpen.core.channels.health import ChannelState
from bullpen.core.clock import SECOND
from bullpen.core.errors import BullpenError, UnknownService, UnsafeDirectory
from bullpen.core.inspect.channels import ChannelRecord, channel_fields, list_channels
from bullpen.core.inspect.lanes import LaneRecord
from bullpen.core.inspect.queue import QueueStatus, queue_status
from bullpen.core.inspect.responses import list_deliverable
from bullpen.core.logs import read_log_tail
from bullpen.core.maintenance.jobs import JobStatus, list_job_statuses
from bullpen.core.network import api_url, has_listener, listening_pids
from bullpen.core.outbox.hold import Hold, find_hold
from bullpen.core.roster.agents import list_agents
from bullpen.core.settings import Settings
from bullpen.core.states import LaneState
from bullpen.core.store.open import database_file, is_known_database, open_store
from bullpen.ops.backup.create import Backup, last_backup
from bullpen.ops.services.launch import lock_holders, process_and_children
from bullpen.ops.services.supervisor import DOWN_STATES, RUNNING, Service, Supervisor

API = "api"
SEPARATOR = " · "
JOBS_HEADING = ("JOB", "EVERY", "LAST RUN", "TOOK", "RESULT")
RESULT_CHARS = 100

SERVICES_HEADING = ("SERVICE", "STATE", "PID", "UPTIME")
NO_SERVICES = "No services."


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """The status of the store at one moment."""

    jobs: Sequence[JobStatus]
    queue: QueueStatus
    lanes: Sequence[LaneRecord]
    """The lanes of agents that exist and do not run their messages."""
    now: int
    unread: int
    hold: Hold | None
    channels: Sequence[ChannelRecord]


@dataclass(frozen=True, slots=True)
class Action:
    """Something for a person to do: a sentence, and the commands that help."""

    text: str
    commands: tuple[str, ...]


def read_store_status(settings: Settings) -> StoreStatus:
    """Read the status of the store in one transaction."""
    with closing(open_store(settings)) as store, store.read() as tx:
        queue = queue_status(tx)
        agents = {each.id for each in list_agents(tx)}
        return StoreStatus(
            jobs=list_job_statuses(tx),
            queue=queue,
            lanes=[
                lane
                for lane in queue.lanes
                if lane.agent in agents and lane.state != LaneState.ACTIVE
            ],
            now=tx.now,
            unread=len(list_deliverable(tx, CLI, 0, MAX_LIMIT)),
            hold=find_hold(tx),
            channels=list_channels(tx),
        )


def print_store_status(store: StoreStatus, last: Backup | None) -> None:
    """Print a line each for the queue, the maintenance jobs and the backup."""
    queue = store.queue
    counts = (
        f"{queue.pending} pending",
        f"{queue.processing} processing",
        f"{queue.held} held",
        f"{queue.dead} dead",
        f"{format_count(queue.outgoing, 'response')} to deliver",
    )
    _print_field("Queue", SEPARATOR.join(counts))
    for each in store.channels:
        _print_field("Channel", _format_channel(each, store.now))
    _print_field("Jobs", _format_jobs(store))
    age = "none" if last is None else f"{format_duration(store.now - last.made_at)} ago"
    _print_field("Backup", age)


def _print_field(name: str, text: str) -> None:
    first, *rest = wrap(text, " " * 9)
    echo(f"{name + ':':<9}{first.lstrip()}")
    for line in rest:
        echo(line)


def print_jobs(store: StoreStatus) -> None:
    """Print the table of maintenance jobs."""
    rows = [JOBS_HEADING, *(_job_row(each, store.now) for each in store.jobs)]
    print_table(rows, "No jobs.")


def _format_jobs(store: StoreStatus) -> str:
    """The state of the maintenance jobs in one line, with the names of failing ones."""
    runs = [each.last_run_at for each in store.jobs if each.last_run_at is not None]
    if not runs:
        return "no runs yet"
    failing = [each for each in store.jobs if each.last_error is not None]
    if failing:
        return "; ".join(f"{each.name} {_format_result(each, store.now)}" for each in failing)
    last = format_duration(store.now - max(runs))
    return f"{len(store.jobs)} ok, last run {last} ago"


def _format_channel(channel: ChannelRecord, now: int) -> str:
    parts = [f"{channel.channel} {channel.state}"]
    if channel.since is not None:
        parts[0] += f" for {format_duration(now - channel.since)}"
    if channel.last_message_at is not None:
        parts.append(f"last message {format_duration(now - channel.last_message_at)} ago")
    return SEPARATOR.join([*parts, *filter(None, [channel.details])])


def _channel_actions(channel: ChannelRecord) -> Iterator[Action]:
    name = channel.channel
    if channel.waiting:
        count = format_count(channel.waiting, "pairing request waits", "pairing requests wait")
        yield Action(f"{count} on {name}.", (f"bullpen pairing list --channel {name}",))
    if channel.paused:
        yield Action(f"{name} is paused.", (f"bullpen channel resume {name}",))
    elif channel.state in (ChannelState.DOWN, ChannelState.DEGRADED):
        why = f": {channel.reason}" if channel.reason else ""
        hint = f" {channel.hint}" if channel.hint else ""
        text = f"{name} is {channel.state}{why.rstrip('.')}.{hint}"
        yield Action(text, (f"bullpen channel status {name}",))


def _store_actions(store: StoreStatus) -> Iterator[Action]:
    for channel in store.channels:
        yield from _channel_actions(channel)
    for lane in store.lanes:
        why = f": {lane.reason}" if lane.reason else ""
        yield Action(
            f"@{lane.agent} is {lane.state}{why.rstrip('.')}.",
            (f"bullpen agent resume {lane.agent}",),
        )
    if store.hold is not None:
        yield Action(
            f"Responses and schedules are on hold: {store.hold.reason.rstrip('.')}.",
            ("bullpen db release",),
        )
    if store.queue.held:
        count = format_count(store.queue.held, "message needs", "messages need")
        yield Action(f"{count} approval.", ("bullpen queue held",))
    if store.queue.dead:
        count = format_count(store.queue.dead, "message is", "messages are")
        yield Action(f"{count} dead.", ("bullpen queue dead",))
    if store.unread:
        count = format_count(store.unread, "response is", "responses are")
        yield Action(f"{count} unread.", ("bullpen response read",))


def _job_row(job: JobStatus, now: int) -> tuple[str, ...]:
    ran, took = job.last_run_at, job.last_duration
    return (
        job.name,
        format_duration(job.every_seconds * SECOND),
        "never" if ran is None else f"{format_duration(now - ran)} ago",
        "" if took is None else f"{took} ms",
        " ".join(_format_result(job, now).split())[:RESULT_CHARS],
    )


def _format_result(job: JobStatus, now: int) -> str:
    if job.running_since is not None:
        return f"running for {format_duration(now - job.running_since)}"
    if job.last_error is not None:
        times = format_count(job.failures, "time")
        return f"failed {times} in a row: {job.last_error}"
    return job.last_result or ""


def service_rows(services: Sequence[Service]) -> list[tuple[str, ...]]:
    """A table of services."""
    return [
        SERVICES_HEADING,
        *(
            (
                each["name"],
                format_state(each["state"].lower()),
                str(each["pid"]) if each["pid"] else "",
                format_duration(each["seconds"] * SECOND) if each["pid"] else "",
            )
            for each in services
        ),
    ]


def print_services(services: Sequence[Service]) -> None:
    """Print a table of services."""
    print_table(service_rows(services), NO_SERVICES)


def _service_actions(settings: Settings, services: Sequence[Service]) -> Iterator[Action]:
    """The services that are down, each with the last line of its log."""
    for each in services:
        if each["state"] in DOWN_STATES:
            name = each["name"]
            lines = last_words(settings, name, 1)
            why = f" Last line of its log: {lines[0]}" if lines else ""
            yield Action(
                f"{name} is down.{why}", (f"bullpen logs {name}", f"bullpen restart {name}")
            )


def foreign_listener(settings: Settings) -> Action | None:
    """The action if another program has the API's port, where a client would send its token."""
    if not has_listener(settings):
        return None
    # The lock is read after the port, because our API takes it before it listens. The lock is not
    # enough: an API that cannot listen holds it as well.
    holder = lock_holders(settings).get(API)
    if holder is not None:
        pids = listening_pids(settings.api_port)
        if pids is None or pids & process_and_children(holder):
            return None
    return Action(
        f"Another program answers on port {settings.api_port}. It is not this home's API: do not"
        " send it a token.",
        ("bullpen doctor --only net",),
    )


def api_runs(services: Sequence[Service]) -> bool:
    """Whether the API runs, and so has its port."""
    return any(each["name"] == API and each["state"] == RUNNING for each in services)


def last_words(settings: Settings, name: str, count: int) -> list[str]:
    """The last lines of a service's log; none if it has no log."""
    try:
        return read_log_tail(settings, name, count, settings.secrets())
    except UnknownService:
        return []


@command()
@click.option("--all", "-a", "every", is_flag=True, help="List the maintenance jobs.")
@click.option("--watch", "-w", "watched", is_flag=True, help="Refresh until Ctrl-C.")
@click.option(
    "--interval",
    "seconds",
    type=Amount(0.2),
    default=WATCH_SECONDS,
    show_default=True,
    help="Seconds between two refreshes.",
)
def status(settings: Settings, every: bool, watched: bool, seconds: float) -> Result | None:
    """Show services, queue and pending actions.

    The exit status is 3 if a service is down.

    \b
    Examples:
      bullpen status
      bullpen status --json
      bullpen status --watch
    """
    if watched and not json_requested():
        watch(lambda: _read_status(settings, every).print(as_json=False), seconds)
        return None
    return _read_status(settings, every)


def _read_status(settings: Settings, every: bool) -> Result:
    services = list_services(settings)
    store, error = _store_status(settings)
    healthy = services and all(each["state"] == RUNNING for each in services)
    return Result(
        _document(settings, services, store),
        show=lambda: _print_status(settings, services, store, error, every),
        status=0 if healthy else 3,
    )


def list_services(settings: Settings) -> list[Service]:
    """The services; none if no supervisor answers."""
    supervisor = Supervisor(settings)
    try:
        return supervisor.services() if supervisor.alive() else []
    except UnsafeDirectory as error:
        print_error(str(error), error.hint, error.code)
        return []


def _document(
    settings: Settings, services: list[Service], store: StoreStatus | None
) -> dict[str, object]:
    return {
        "services": services,
        "api": api_url(settings) if api_runs(services) else None,
        "queue": None if store is None else _queue_fields(store.queue),
        "system_agents": None if store is None else [asdict(each) for each in store.jobs],
        "channels": None if store is None else [channel_fields(each) for each in store.channels],
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
            # The row keeps the worker of its last claim; only a lease shows that one has it now.
            "worker": each.claimed_by if each.lease_expires_at else None,
            "lease_expires_at": each.lease_expires_at,
        }
        for each in queue.lanes
    ]
    return {**asdict(queue), "lanes": lanes}


def _store_status(settings: Settings) -> tuple[StoreStatus | None, str]:
    """The status of the store; or None and the error, which is empty if there is no store yet."""
    try:
        file = database_file(settings)
        if file is not None and not file.exists() and not is_known_database(settings):
            return None, ""  # opening it would create it
        return read_store_status(settings), ""
    except BullpenError as error:
        return None, f"{error}. {error.hint}".strip()


def _print_status(
    settings: Settings, services: list[Service], store: StoreStatus | None, error: str, every: bool
) -> None:
    actions = list(_service_actions(settings, services))
    if foreign := foreign_listener(settings):
        actions.append(foreign)
    if error:
        actions.append(Action(f"The database cannot be read: {error}", ("bullpen doctor",)))
    if store is not None:
        actions += _store_actions(store)
    echo(_headline(services, actions))
    if services:
        echo()
        print_services(services)
    if services or store is not None:
        echo()
    if api_runs(services):
        _print_field("API", api_url(settings))
    if store is not None:
        print_store_status(store, last_backup(settings))
    if store is not None and every:
        echo()
        print_jobs(store)
    for each in actions:
        _print_action(each)


def _headline(services: Sequence[Service], actions: Sequence[Action]) -> str:
    """Whether all is fine, in one line."""
    down = [each["name"] for each in services if each["state"] in DOWN_STATES]
    if not services:
        return style("Bullpen is not running. Next: bullpen up", fg="yellow", bold=True)
    if down:
        count = format_count(len(down), "service is", "services are")
        return style(f"{count} down: {', '.join(down)}.", fg="red", bold=True)
    changing = [each["name"] for each in services if each["state"] != RUNNING]
    if changing:
        return style(f"Bullpen is starting or stopping: {', '.join(changing)}.", fg="cyan")
    if actions:
        count = format_count(len(actions), "pending action")
        return style(f"Bullpen is running, with {count}.", fg="yellow", bold=True)
    return style("Bullpen is running. No pending actions.", fg="green", bold=True)


def _print_action(action: Action) -> None:
    """Print a sentence, and each command on a line of its own, where it is not wrapped."""
    echo()
    for line in wrap(action.text):
        echo(line)
    for each in action.commands:
        echo(f"  {each}")
