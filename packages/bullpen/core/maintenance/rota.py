"""The system agents: which loops there are, and whose turn each is.

Every process that keeps order asks often; the row of each loop in `system_agents` sees to it that
one of them runs it, in its time. A loop that fails says so and stops no other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import bindparam, insert, null, select, update

from bullpen.core.clock import MINUTE, SECOND
from bullpen.core.maintenance.archive import archive
from bullpen.core.maintenance.checkpoint import checkpoint
from bullpen.core.maintenance.dead_letters import dead_letters
from bullpen.core.maintenance.deadlines import deadlines
from bullpen.core.maintenance.deliveries import deliveries
from bullpen.core.maintenance.gathered import gathered
from bullpen.core.maintenance.leases import leases
from bullpen.core.maintenance.progress import progress
from bullpen.core.maintenance.receipts import receipts
from bullpen.core.maintenance.workers import workers
from bullpen.core.models import SYSTEM_AGENTS
from bullpen.core.models.base import const
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement

log = logging.getLogger(__name__)

A = SYSTEM_AGENTS.c
TURN_SECONDS = 300


@dataclass(frozen=True, slots=True)
class SystemAgent:
    """A loop: what it is called, how often it runs, and what it does."""

    name: str
    every_seconds: int
    run: Callable[[Store], str]
    """Gives what it did, in words."""
    turn_seconds: int = TURN_SECONDS
    """How long it may run before another process takes its turn."""


ROTA: tuple[SystemAgent, ...] = (
    # It must not wait for a processor that died while it looked after the dead.
    SystemAgent("leases", 5, leases, turn_seconds=5),
    SystemAgent("gathered", 5, gathered),
    SystemAgent("deadlines", 60, deadlines),
    SystemAgent("deliveries", 60, deliveries),
    SystemAgent("archive", 60, archive),
    SystemAgent("progress", 3600, progress),
    SystemAgent("receipts", 3600, receipts),
    SystemAgent("workers", 60, workers),
    SystemAgent("dead_letters", 60, dead_letters),
    SystemAgent("checkpoint", 10, checkpoint),
)

ENTER: Statement[None] = Statement(
    insert(SYSTEM_AGENTS).from_select(
        [A.name, A.lease_expires_at, A.next_run_at],
        select(bindparam("name", type_=A.name.type), const(0), const(0))
        .where(const(1) == const(1))
        .suffix_with("ON CONFLICT DO NOTHING"),
    )
)

DUE: Statement[tuple[str]] = Statement(
    select(A.name)
    .where(A.next_run_at <= bindparam("now"), A.lease_expires_at <= bindparam("now"))
    .order_by(A.next_run_at)
)

TAKE: Statement[None] = Statement(
    update(SYSTEM_AGENTS)
    .where(
        A.name == bindparam("agent"),
        A.next_run_at <= bindparam("now"),
        A.lease_expires_at <= bindparam("now"),
    )
    .values(holder=bindparam("worker"), lease_expires_at=bindparam("until"))
)

DONE: Statement[None] = Statement(
    update(SYSTEM_AGENTS)
    .where(A.name == bindparam("agent"), A.holder == bindparam("worker"))
    .values(
        holder=null(),
        lease_expires_at=const(0),
        next_run_at=bindparam("again"),
        last_run_at=bindparam("began"),
        last_duration=bindparam("duration"),
        last_result=bindparam("result"),
        last_error=bindparam("error"),
    )
)


def enter_rota(store: Store, rota: tuple[SystemAgent, ...] = ROTA) -> None:
    """Make sure that every loop has its row."""
    with store.write() as tx:
        for agent in rota:
            tx.write(ENTER, {"name": agent.name})


def run_due(store: Store, worker: str, rota: tuple[SystemAgent, ...] = ROTA) -> list[str]:
    """Run the loops whose time has come and that nobody else runs; gives their names."""
    with store.read() as tx:
        due = {name for (name,) in tx.all(DUE, {"now": tx.now})}
    return [agent.name for agent in rota if agent.name in due and _run(store, worker, agent)]


def _run(store: Store, worker: str, agent: SystemAgent) -> bool:
    with store.write(durable=False) as tx:
        values = {"agent": agent.name, "worker": worker, "now": tx.now}
        if tx.change(TAKE, {**values, "until": tx.now + agent.turn_seconds * SECOND}) == 0:
            return False
    began = store.clock.now()
    result, error = None, None
    try:
        result = agent.run(store)
    except Exception as failed:
        log.exception("system agent %s failed", agent.name)
        error = str(failed)
    now = store.clock.now()
    pause = agent.every_seconds * SECOND
    if error is not None:
        pause = min(2 * pause, MINUTE)
    with store.write(durable=False) as tx:
        tx.write(
            DONE,
            {
                "agent": agent.name,
                "worker": worker,
                "again": now + pause,
                "began": began,
                "duration": now - began,
                "result": result,
                "error": error,
            },
        )
    return True
