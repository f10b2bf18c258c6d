"""What messages died of: one cause for errors that differ in numbers and ids only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Column, bindparam, insert, select, update

from bullpen.core.models import DEATH_CAUSES
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

C = DEATH_CAUSES.c

FailureGroupTuple = tuple[str, str, str, int, int, int, int | None]


def _columns() -> tuple[Column[object], ...]:
    return (C.fingerprint, C.kind, C.error, C.deaths, C.first_at, C.last_at, C.told_at)


ADD_TO_GROUP: Statement[FailureGroupTuple] = Statement(
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

INSERT_GROUP: Statement[None] = Statement(
    lambda: insert(DEATH_CAUSES).values({column.name: bindparam(column.name) for column in C})
)

MARK_NOTIFIED: Statement[None] = Statement(
    lambda: (
        update(DEATH_CAUSES)
        .where(C.fingerprint == bindparam("cause"))
        .values(told_at=bindparam("now"))
    )
)

# There are as many rows as ways to die: an index would be larger than the table.
SELECT_NEWEST_GROUPS: Statement[FailureGroupTuple] = Statement(
    lambda: select(*_columns()).order_by(C.last_at.desc(), C.fingerprint).limit(bindparam("limit"))
)


@dataclass(frozen=True, slots=True)
class FailureGroup:
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
class DeadMessage:
    """One message that died."""

    message_id: str
    agent: str
    kind: str
    error: str
    at: int


def add_to_failure_group(
    tx: Transaction, cause: str, deaths: Sequence[DeadMessage]
) -> FailureGroup:
    """Count these, of one cause, the oldest first; gives what is known of it now."""
    first, last = deaths[0], deaths[-1]
    values = {"kind": last.kind, "error": last.error, "deaths": len(deaths), "last_at": last.at}
    row = tx.one(ADD_TO_GROUP, {**values, "cause": cause})
    if row is not None:
        return FailureGroup(*row)
    made = {**values, "fingerprint": cause, "first_at": first.at, "told_at": None}
    tx.write(INSERT_GROUP, made)
    return FailureGroup(cause, last.kind, last.error, len(deaths), first.at, last.at, None)


def mark_owner_notified(tx: Transaction, cause: str) -> None:
    """Remember that the owner knows of it."""
    tx.write(MARK_NOTIFIED, {"cause": cause, "now": tx.now})


def list_failure_groups(tx: Transaction, limit: int) -> list[FailureGroup]:
    """What messages died of, the cause of the latest death first."""
    return [FailureGroup(*row) for row in tx.all(SELECT_NEWEST_GROUPS, {"limit": limit})]
