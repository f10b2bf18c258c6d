"""Whose turn it is: a system agent is run by one process at a time, in its time.

The row of each in `system_agents` is its election. Whoever runs it holds a short lease, and renews
it for as long as the run lasts: so a run may be long, and a dead process's turn is taken up soon.
"""

from __future__ import annotations

import logging

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Text,
    and_,
    bindparam,
    case,
    insert,
    null,
    or_,
    select,
    update,
)

from bullpen.core.clock import HOUR, MINUTE, SECOND
from bullpen.core.events.append import EventType, append_event
from bullpen.core.maintenance.system_agent import MaintenanceJob
from bullpen.core.models import SYSTEM_AGENTS
from bullpen.core.models.base import const
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

log = logging.getLogger(__name__)

A = SYSTEM_AGENTS.c

JOB_LEASE_SECONDS = 10
RENEW_LEASE_SECONDS = 3.0
MAX_WAIT_SECONDS = 60.0
"""The longest that nobody looks: another process may have left, or the clock been set."""
MAX_PAUSE = HOUR
"""The longest pause after failures, and the longest between two runs."""

INSERT_JOB: Statement[None] = Statement(
    lambda: insert(SYSTEM_AGENTS).from_select(
        [A.name, A.lease_expires_at, A.next_run_at, A.failures, A.cursor],
        select(bindparam("name", type_=A.name.type), const(0), const(0), const(0), const(0))
        .where(const(1) == const(1))
        .suffix_with("ON CONFLICT DO NOTHING"),
    )
)

FIND_JOB_TIMES: Statement[tuple[int, int, str | None]] = Statement(
    lambda: select(A.next_run_at, A.lease_expires_at, A.holder).where(A.name == bindparam("agent"))
)

# What lies further ahead than it can was written before somebody set the clock back.


def _free() -> ColumnElement[bool]:
    return or_(
        A.lease_expires_at <= bindparam("now"),
        A.lease_expires_at > bindparam("never_held"),
        # Its run is over, and that could not be written down.
        A.holder == bindparam("worker"),
    )


def _due() -> ColumnElement[bool]:
    return or_(A.next_run_at <= bindparam("now"), A.next_run_at > bindparam("never_due"))


TAKE_LEASE: Statement[tuple[int]] = Statement(
    lambda: (
        update(SYSTEM_AGENTS)
        .where(and_(A.name == bindparam("agent"), _due(), _free()))
        .values(
            holder=bindparam("worker"),
            lease_expires_at=bindparam("until"),
            running_since=bindparam("now"),
        )
        .returning(A.failures)
    )
)

RENEW_LEASES: Statement[None] = Statement(
    lambda: (
        update(SYSTEM_AGENTS)
        .where(A.holder == bindparam("worker"))
        .values(lease_expires_at=bindparam("until"))
    )
)

FIND_HELD_JOB: Statement[tuple[str]] = Statement(
    lambda: select(A.name).where(A.holder == bindparam("worker")).limit(const(1))
)

RELEASE_LEASES: Statement[None] = Statement(
    lambda: (
        update(SYSTEM_AGENTS)
        .where(A.holder == bindparam("worker"))
        .values(holder=null(), lease_expires_at=const(0), running_since=null())
    )
)


def _error() -> BindParameter[str]:
    return bindparam("error", type_=Text)


FINISH_JOB: Statement[None] = Statement(
    lambda: (
        update(SYSTEM_AGENTS)
        .where(A.name == bindparam("agent"), A.holder == bindparam("worker"))
        .values(
            holder=null(),
            lease_expires_at=const(0),
            running_since=null(),
            next_run_at=bindparam("again"),
            last_run_at=bindparam("began"),
            last_duration=bindparam("duration"),
            last_result=bindparam("result"),
            last_error=_error(),
            failures=case((_error().is_(null()), const(0)), else_=A.failures + const(1)),
        )
    )
)


def register_jobs(store: Store, rota: tuple[MaintenanceJob, ...]) -> None:
    """Make sure that every system agent has its row."""
    with store.write() as tx:
        for agent in rota:
            tx.write(INSERT_JOB, {"name": agent.name})


def run_job_if_due(store: Store, worker: str, agent: MaintenanceJob) -> float:
    """Run it if it is due and nobody else runs it; gives in how many seconds to ask again."""
    with store.read() as tx:
        wait = _seconds_until_due(tx, worker, agent)
    if wait > 0:
        return wait
    with store.write(durable=False) as tx:
        taken = tx.one(
            TAKE_LEASE,
            {
                **_clock_bounds(tx),
                "agent": agent.name,
                "worker": worker,
                "until": tx.now + JOB_LEASE_SECONDS * SECOND,
            },
        )
    if taken is not None:
        _run_job(store, worker, agent, failures=taken[0])
    with store.read() as tx:
        return max(_seconds_until_due(tx, worker, agent), 0.0)


def renew_job_leases(store: Store, worker: str) -> None:
    """Keep all turns that this process holds."""
    with store.read() as tx:
        if tx.one(FIND_HELD_JOB, {"worker": worker}) is None:
            return
    with store.write(durable=False) as tx:
        tx.write(RENEW_LEASES, {"worker": worker, "until": tx.now + JOB_LEASE_SECONDS * SECOND})


def release_job_leases(tx: Transaction, worker: str) -> None:
    """Let others have what this process holds; what it was doing is to be done again."""
    tx.write(RELEASE_LEASES, {"worker": worker})


def _clock_bounds(tx: Transaction) -> dict[str, object]:
    return {"now": tx.now, "never_due": tx.now + MAX_PAUSE, "never_held": tx.now + MINUTE}


def _seconds_until_due(tx: Transaction, worker: str, agent: MaintenanceJob) -> float:
    row = tx.one(FIND_JOB_TIMES, {"agent": agent.name})
    if row is None:
        return MAX_WAIT_SECONDS
    due = 0 if row[0] > tx.now + MAX_PAUSE else row[0]
    held = 0 if row[1] > tx.now + MINUTE or row[2] == worker else row[1]
    return min((max(due, held) - tx.now) / SECOND, MAX_WAIT_SECONDS)


def _run_job(store: Store, worker: str, agent: MaintenanceJob, failures: int) -> None:
    began = store.clock.now()
    result, error = None, None
    pause = agent.every_seconds * SECOND
    try:
        result = agent.run(store)
    except Exception as failed:
        failures += 1
        log.exception("system agent %s failed, for the %d. time in a row", agent.name, failures)
        error = str(failed) or type(failed).__name__
        # A number so large that it has no end would only be compared with the longest pause.
        pause = max(pause, min(pause << min(failures, 20), MAX_PAUSE))
    now = store.clock.now()
    values = {
        "agent": agent.name,
        "worker": worker,
        "again": now + pause,
        "began": began,
        "duration": now - began,
        "result": result,
        "error": error,
    }
    with store.write(durable=False) as tx:
        if tx.change(FINISH_JOB, values) == 0:
            log.warning("system agent %s was taken up by another process meanwhile", agent.name)
        elif error is not None:
            failed_as = EventType.SYSTEM_AGENT_FAILED
            append_event(tx, failed_as, name=agent.name, error=error, failures=failures)
