"""What the store has to say in `bullpen status`: of its system agents, and what nobody has read."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

import click

from bullpen.cli.output import MOST, show_table
from bullpen.cli.response import CLI
from bullpen.cli.span import span
from bullpen.core.clock import SECOND
from bullpen.core.maintenance.account import Account, system_agents
from bullpen.core.outbox.browse import to_send
from bullpen.core.queue.status import QueueStatus, queue_status
from bullpen.core.settings import Settings
from bullpen.core.store.open import open_store

HEADING = ("SYSTEM AGENT", "EVERY", "LAST RUN", "TOOK", "RESULT")
RESULT_LENGTH = 100


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """What each system agent did, the queue, the moment of the question, and what is unread."""

    agents: Sequence[Account]
    queue: QueueStatus
    now: int
    unread: int


def store_status(settings: Settings) -> StoreStatus:
    """Look at the store."""
    with closing(open_store(settings)) as store, store.read() as tx:
        unread = len(to_send(tx, CLI, 0, MOST))
        return StoreStatus(system_agents(tx), queue_status(tx), tx.now, unread)


def show_store_status(found: StoreStatus) -> None:
    """Print the queue in a line, one for each system agent, and whether there is mail to read."""
    queue = found.queue
    click.echo(
        f"Queue: {queue.pending} waiting, {queue.processing} running, {queue.held} held, "
        f"{queue.dead} dead; {queue.outgoing} going out\n"
    )
    show_table([HEADING, *(_row(agent, found.now) for agent in found.agents)], "There are none.")
    if found.unread:
        count = f"{found.unread} messages wait" if found.unread > 1 else "1 message waits"
        click.echo(f"\n{count} to be read by you. Next: bullpen response read")


def _row(agent: Account, now: int) -> tuple[str, ...]:
    ran, took = agent.last_run_at, agent.last_duration
    return (
        agent.name,
        span(agent.every_seconds * SECOND),
        "never" if ran is None else f"{span(now - ran)} ago",
        "" if took is None else f"{took} ms",
        " ".join(_result(agent, now).split())[:RESULT_LENGTH],
    )


def _result(agent: Account, now: int) -> str:
    if agent.running_since is not None:
        return f"runs for {span(now - agent.running_since)}"
    if agent.last_error is not None:
        return f"failed {agent.failures} times in a row: {agent.last_error}"
    return agent.last_result or ""
