"""Maintenance jobs: the registry, the election of one process for each, and their record.

One process at a time runs a job. The job's row in `system_agents` holds a short lease, which the
process renews while the job runs. A job may run long; the lease of a stopped process expires soon.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

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
from bullpen.core.events.append import append_event
from bullpen.core.events.system import SystemAgentFailed
from bullpen.core.maintenance.dead_letters import watch_dead_letters
from bullpen.core.maintenance.recovery import (
    check_workers,
    end_stale_deliveries,
    recover_expired_claims,
    run_all_timers,
    send_due_aggregates,
)
from bullpen.core.maintenance.retention import run_retention
from bullpen.core.maintenance.storage import checkpoint, reclaim_space
from bullpen.core.maintenance.unused_files import delete_unused_files
from bullpen.core.models import SYSTEM_AGENTS
from bullpen.core.models.base import const
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement, columns
from bullpen.core.store.transaction import Transaction

log = logging.getLogger(__name__)

JOB_LEASE_SECONDS = 10
RENEW_LEASE_SECONDS = 3.0
MAX_WAIT_SECONDS = 60.0
"""The longest time between two checks: another process may stop, or the clock may be set."""
MAX_PAUSE = HOUR
"""The longest pause after failures; every job runs at least this often."""


@dataclass(frozen=True, slots=True)
class MaintenanceJob:
    """A job with its name, interval and function."""

    name: str
    every_seconds: int
    run: Callable[[Store], str]
    """Returns its result in one line."""


def _retention_job(name: str, every_seconds: int) -> MaintenanceJob:
    return MaintenanceJob(name, every_seconds, partial(run_retention, job=name))


JOBS: tuple[MaintenanceJob, ...] = (
    MaintenanceJob("leases", 5, recover_expired_claims),
    MaintenanceJob("gathered", 5, send_due_aggregates),
    MaintenanceJob("deadlines", 60, run_all_timers),
    MaintenanceJob("deliveries", 60, end_stale_deliveries),
    _retention_job("archive", 60),
    _retention_job("archived", 3600),
    _retention_job("events", 3600),
    _retention_job("progress", 3600),
    _retention_job("attempts", 3600),
    _retention_job("history", 3600),
    _retention_job("due_times", 3600),
    _retention_job("receipts", 3600),
    MaintenanceJob("files", 3600, delete_unused_files),
    MaintenanceJob("workers", 60, check_workers),
    MaintenanceJob("dead_letters", 60, watch_dead_letters),
    MaintenanceJob("checkpoint", 10, checkpoint),
    MaintenanceJob("space", 600, reclaim_space),
)


A = SYSTEM_AGENTS.c


@dataclass(frozen=True, slots=True)
class _JobRow:
    name: str
    next_run_at: int
    last_run_at: int | None
    last_duration: int | None
    last_result: str | None
    last_error: str | None
    failures: int
    holder: str | None
    running_since: int | None
    lease_expires_at: int


LIST_JOBS: Statement[_JobRow] = Statement(lambda: select(*columns(_JobRow, SYSTEM_AGENTS)), _JobRow)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """The state of one job; None for what has not happened yet."""

    name: str
    every_seconds: int
    next_run_at: int | None = None
    last_run_at: int | None = None
    last_duration: int | None = None
    """In milliseconds."""
    last_result: str | None = None
    last_error: str | None = None
    failures: int = 0
    """Failures in a row."""
    holder: str | None = None
    """The process that is running it."""
    running_since: int | None = None


def list_job_statuses(tx: Transaction) -> list[JobStatus]:
    """Every job in the order of `JOBS`, jobs that never ran included."""
    rows = {row.name: row for row in tx.all(LIST_JOBS, {})}
    return [
        JobStatus(name=job.name, every_seconds=job.every_seconds)
        if (row := rows.get(job.name)) is None
        else _job_status(row, job.every_seconds, tx.now)
        for job in JOBS
    ]


def _job_status(row: _JobRow, every_seconds: int, now: int) -> JobStatus:
    # The row still names a process that stopped while it ran the job.
    held = row.lease_expires_at > now
    return JobStatus(
        name=row.name,
        every_seconds=every_seconds,
        next_run_at=row.next_run_at or None,
        last_run_at=row.last_run_at,
        last_duration=row.last_duration,
        last_result=row.last_result,
        last_error=row.last_error,
        failures=row.failures,
        holder=row.holder if held else None,
        running_since=row.running_since if held else None,
    )


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

# A time too far in the future was written before the clock was set back.


def _free() -> ColumnElement[bool]:
    return or_(
        A.lease_expires_at <= bindparam("now"),
        A.lease_expires_at > bindparam("never_held"),
        # The run ended, but its end could not be recorded.
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


def register_jobs(store: Store, jobs: tuple[MaintenanceJob, ...]) -> None:
    """Insert the missing rows of jobs."""
    with store.write() as tx:
        for job in jobs:
            tx.write(INSERT_JOB, {"name": job.name})


def run_job_if_due(store: Store, worker: str, job: MaintenanceJob) -> float:
    """Run a job if it is due and no other process runs it; returns the seconds to wait."""
    with store.read() as tx:
        wait = _seconds_until_due(tx, worker, job)
    if wait > 0:
        return wait
    with store.write(durable=False) as tx:
        taken = tx.one(
            TAKE_LEASE,
            {
                **_clock_bounds(tx),
                "agent": job.name,
                "worker": worker,
                "until": tx.now + JOB_LEASE_SECONDS * SECOND,
            },
        )
    if taken is not None:
        _run_job(store, worker, job, failures=taken[0])
    with store.read() as tx:
        return max(_seconds_until_due(tx, worker, job), 0.0)


def renew_job_leases(store: Store, worker: str) -> None:
    """Extend the leases of all jobs that this process runs."""
    with store.read() as tx:
        if tx.one(FIND_HELD_JOB, {"worker": worker}) is None:
            return
    with store.write(durable=False) as tx:
        tx.write(RENEW_LEASES, {"worker": worker, "until": tx.now + JOB_LEASE_SECONDS * SECOND})


def release_job_leases(tx: Transaction, worker: str) -> None:
    """End the leases of a process, so that another one runs its jobs."""
    tx.write(RELEASE_LEASES, {"worker": worker})


def _clock_bounds(tx: Transaction) -> dict[str, object]:
    return {"now": tx.now, "never_due": tx.now + MAX_PAUSE, "never_held": tx.now + MINUTE}


def _seconds_until_due(tx: Transaction, worker: str, job: MaintenanceJob) -> float:
    row = tx.one(FIND_JOB_TIMES, {"agent": job.name})
    if row is None:
        return MAX_WAIT_SECONDS
    due = 0 if row[0] > tx.now + MAX_PAUSE else row[0]
    held = 0 if row[1] > tx.now + MINUTE or row[2] == worker else row[1]
    return min((max(due, held) - tx.now) / SECOND, MAX_WAIT_SECONDS)


def _run_job(store: Store, worker: str, job: MaintenanceJob, failures: int) -> None:
    began = store.clock.now()
    result, error = None, None
    pause = job.every_seconds * SECOND
    try:
        result = job.run(store)
    except Exception as failed:
        failures += 1
        log.exception("system agent %s failed (%d in a row)", job.name, failures)
        error = str(failed) or type(failed).__name__
        # The shift is limited because the pause is.
        pause = max(pause, min(pause << min(failures, 20), MAX_PAUSE))
    now = store.clock.now()
    values = {
        "agent": job.name,
        "worker": worker,
        "again": now + pause,
        "began": began,
        "duration": now - began,
        "result": result,
        "error": error,
    }
    with store.write(durable=False) as tx:
        if tx.change(FINISH_JOB, values) == 0:
            log.warning("system agent %s was taken over by another process", job.name)
        elif error is not None:
            append_event(tx, SystemAgentFailed(name=job.name, error=error, failures=failures))
