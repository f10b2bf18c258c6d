"""What messages died of: one cause for errors that differ in numbers and ids only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Column, bindparam, insert, select, update

from bullpen.core.models import DEATH_CAUSES
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

C = DEATH_CAUSES.c

DeathCauseTuple = tuple[str, str, str, int, int, int, int | None]


def _columns() -> tuple[Column[object], ...]:
    return (C.fingerprint, C.kind, C.error, C.deaths, C.first_at, C.last_at, C.told_at)


ADD: Statement[DeathCauseTuple] = Statement(
    lambda: (
        update(DEATH_CAUSES)
        .where(C.fingerprint == bindparam("cause"))
        .values(
            kind=bindparam("kind"),
            error=bindparam("error"),
            deaths=C.deaths + bindparam("deaths"),
            last_at=bindparam("last_at"),
        )
        .returning(*_columns())
    )
)

INSERT: Statement[None] = Statement(
    lambda: insert(DEATH_CAUSES).values({column.name: bindparam(column.name) for column in C})
)

TOLD: Statement[None] = Statement(
    lambda: (
        update(DEATH_CAUSES)
        .where(C.fingerprint == bindparam("cause"))
        .values(told_at=bindparam("now"))
    )
)

# There are as many rows as ways to die: an index would be larger than the table.
NEWEST: Statement[DeathCauseTuple] = Statement(
    lambda: select(*_columns()).order_by(C.last_at.desc(), C.fingerprint).limit(bindparam("limit"))
)


@dataclass(frozen=True, slots=True)
class DeathCause:
    """One cause, and how many died of it."""

    fingerprint: str
    kind: str
    error: str
    """The newest of them, as an example."""
    deaths: int
    first_at: int
    last_at: int
    told_at: int | None
    """When the owner was told of it last."""


@dataclass(frozen=True, slots=True)
class Death:
    """One message that died."""

    message_id: str
    agent: str
    kind: str
    error: str
    at: int


def add_deaths(tx: Transaction, cause: str, deaths: Sequence[Death]) -> DeathCause:
    """Count these, of one cause, the oldest first; gives what is known of it now."""
    first, last = deaths[0], deaths[-1]
    values = {"kind": last.kind, "error": last.error, "deaths": len(deaths), "last_at": last.at}
    row = tx.one(ADD, {**values, "cause": cause})
    if row is not None:
        return DeathCause(*row)
    made = {**values, "fingerprint": cause, "first_at": first.at, "told_at": None}
    tx.write(INSERT, made)
    return DeathCause(cause, last.kind, last.error, len(deaths), first.at, last.at, None)


def owner_was_told(tx: Transaction, cause: str) -> None:
    """Remember that the owner knows of it."""
    tx.write(TOLD, {"cause": cause, "now": tx.now})


def newest_causes(tx: Transaction, limit: int) -> list[DeathCause]:
    """What messages died of, the cause of the latest death first."""
    return [DeathCause(*row) for row in tx.all(NEWEST, {"limit": limit})]
