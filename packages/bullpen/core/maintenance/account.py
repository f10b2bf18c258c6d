"""What the system agents have to say for themselves: when each ran last, and what it did."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select

from bullpen.core.maintenance.rota import ROTA
from bullpen.core.models import SYSTEM_AGENTS
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

A = SYSTEM_AGENTS.c

AccountTuple = tuple[str, int, int | None, int | None, str | None, str | None]

LIST: Statement[AccountTuple] = Statement(
    select(A.name, A.next_run_at, A.last_run_at, A.last_duration, A.last_result, A.last_error)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One loop. What is None has not come to pass yet."""

    name: str
    every_seconds: int
    next_run_at: int | None = None
    last_run_at: int | None = None
    last_duration: int | None = None
    """In milliseconds."""
    last_result: str | None = None
    last_error: str | None = None


def system_agents(tx: Transaction) -> list[Account]:
    """All of them, in the order of the rota; those that never ran as well."""
    rows = {row[0]: row[1:] for row in tx.all(LIST, {})}
    return [
        Account(name=agent.name, every_seconds=agent.every_seconds)
        if (row := rows.get(agent.name)) is None
        else Account(
            name=agent.name,
            every_seconds=agent.every_seconds,
            next_run_at=row[0] or None,
            last_run_at=row[1],
            last_duration=row[2],
            last_result=row[3],
            last_error=row[4],
        )
        for agent in ROTA
    ]
