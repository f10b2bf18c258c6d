"""What the store has to say in `bullpen status`: of its system agents, and what nobody has read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import click

from bullpen.cli.output import MAX_LIMIT, print_table
from bullpen.cli.response import CLI
from bullpen.cli.span import format_duration
from bullpen.core.backup.last import Backup
from bullpen.core.clock import SECOND
from bullpen.core.maintenance.account import JobStatus, list_job_statuses
from bullpen.core.outbox.browse import list_deliverable
from bullpen.core.outbox.hold import Hold, find_hold
from bullpen.core.queue.status import QueueStatus, queue_status
from bullpen.core.settings import Settings
from bullpen.core.states import LaneState
from bullpen.core.store.open import open_store

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
    return f"{len(found.agents)} system agents, all well, the last {format_duration(found.now - max(ran))} ago"


def _for_people(found: StoreStatus) -> Iterator[str]:
    for lane in found.queue.lanes:
        if lane.state != LaneState.ACTIVE:
            why = f" ({lane.reason})" if lane.reason else ""
            yield f"@{lane.agent} is {lane.state}{why}. Next: bullpen queue resume {lane.agent}"
    if found.hold is not None:
        yield f"Nothing goes out: {found.hold.reason}. Next: bullpen db let-go"
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
