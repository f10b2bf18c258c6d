"""The hold: nothing is delivered and nothing scheduled fires until the owner releases it.

A store that was restored from a backup has a hold, since its pending responses may have been
delivered and its due schedules may have fired. Deliveries, schedules and heartbeats all check it.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import ColumnElement, bindparam, delete, exists, insert, select

from bullpen.core.models import HOLDS
from bullpen.core.models.base import const
from bullpen.core.store.statement import Statement, columns
from bullpen.core.store.transaction import Transaction

HOLD_NAME = "outgoing"


def _is_the_hold() -> ColumnElement[bool]:
    return HOLDS.c.name == const(HOLD_NAME)


def on_hold() -> ColumnElement[bool]:
    """Whether there is a hold, as a condition in another statement, evaluated once for all rows."""
    return exists(select(HOLDS.c.name).where(_is_the_hold()))


@dataclass(frozen=True, slots=True)
class Hold:
    """The reason and the beginning of a hold."""

    reason: str
    held_at: int


SELECT_HOLD: Statement[Hold] = Statement(
    lambda: select(*columns(Hold, HOLDS)).where(_is_the_hold()), Hold
)
INSERT_HOLD: Statement[None] = Statement(
    lambda: insert(HOLDS).values(
        name=const(HOLD_NAME), reason=bindparam("why"), held_at=bindparam("now")
    )
)
DELETE_HOLD: Statement[None] = Statement(lambda: delete(HOLDS).where(_is_the_hold()))


def find_hold(tx: Transaction) -> Hold | None:
    """The hold of this store, if there is one."""
    return tx.one(SELECT_HOLD, {})


def begin_hold(tx: Transaction, reason: str) -> None:
    """Create the hold; an existing hold gets this reason."""
    tx.write(DELETE_HOLD, {})
    tx.write(INSERT_HOLD, {"why": reason, "now": tx.now})


def end_hold(tx: Transaction) -> bool:
    """Release the hold; returns whether there was one."""
    return tx.change(DELETE_HOLD, {}) > 0
