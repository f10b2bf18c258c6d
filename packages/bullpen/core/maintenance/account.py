"""What the system agents have to say for themselves: when each ran last, and what it did."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select

from bullpen.core.maintenance.rota import JOBS
from bullpen.core.models import SYSTEM_AGENTS
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

A = SYSTEM_AGENTS.c

JobStatusTuple = tuple[
    str, int, int | None, int | None, str | None, str | None, int, str | None, int | None, int
]

LIST_JOBS: Statement[JobStatusTuple] = Statement(
    lambda: select(
        *(A.name, A.next_run_at, A.last_run_at, A.last_duration, A.last_result, A.last_error),
        *(A.failures, A.holder, A.running_since, A.lease_expires_at),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """One loop. What is None has not come to pass yet."""

    name: str
    every_seconds: int
    next_run_at: int | None = None
    last_run_at: int | None = None
    last_duration: int | None = None
    """In milliseconds."""
    last_result: str | None = None
    last_error: str | None = None
    failures: int = 0
    """How often it failed in a row."""
    holder: str | None = None
    """The process that runs it at this moment."""
    running_since: int | None = None


def list_job_statuses(tx: Transaction) -> list[JobStatus]:
    """All of them, in the order of the rota; those that never ran as well."""
    rows = {row[0]: row for row in tx.all(LIST_JOBS, {})}
    return [
        JobStatus(name=agent.name, every_seconds=agent.every_seconds)
        if (row := rows.get(agent.name)) is None
        else _job_status(row, agent.every_seconds, tx.now)
        for agent in JOBS
    ]


def _job_status(row: JobStatusTuple, every_seconds: int, now: int) -> JobStatus:
    # Who died in his turn is named by the row until somebody takes it.
    held = row[9] > now
    return JobStatus(
        name=row[0],
        every_seconds=every_seconds,
        next_run_at=row[1] or None,
        last_run_at=row[2],
        last_duration=row[3],
        last_result=row[4],
        last_error=row[5],
        failures=row[6],
        holder=row[7] if held else None,
        running_since=row[8] if held else None,
    )
