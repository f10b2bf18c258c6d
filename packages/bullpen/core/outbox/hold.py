"""The hold: nothing goes out to people, and nothing comes due, until the owner lets it go.

A store that was restored from a backup has one: what waits in it may have gone out since, and what
it is due to do may have been done. Clients' leases look at it, and so do schedules and heartbeats.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import ColumnElement, bindparam, delete, exists, insert, select

from bullpen.core.models import HOLDS
from bullpen.core.models.base import const
from bullpen.core.store.statement import Statement, columns
from bullpen.core.store.transaction import Transaction

HOLD_NAME = "outgoing"


def _here() -> ColumnElement[bool]:
    return HOLDS.c.name == const(HOLD_NAME)


def on_hold() -> ColumnElement[bool]:
    """Whether there is a hold, as a condition of another statement: asked once for all its rows."""
    return exists(select(HOLDS.c.name).where(_here()))


@dataclass(frozen=True, slots=True)
class Hold:
    """Why nothing goes out, and since when."""

    reason: str
    held_at: int


SELECT_HOLD: Statement[Hold] = Statement(lambda: select(*columns(Hold, HOLDS)).where(_here()), Hold)
INSERT_HOLD: Statement[None] = Statement(
    lambda: insert(HOLDS).values(
        name=const(HOLD_NAME), reason=bindparam("why"), held_at=bindparam("now")
    )
)
DELETE_HOLD: Statement[None] = Statement(lambda: delete(HOLDS).where(_here()))


def find_hold(tx: Transaction) -> Hold | None:
    """The hold of this store, if there is one."""
    return tx.one(SELECT_HOLD, {})


def begin_hold(tx: Transaction, reason: str) -> None:
    """Let nothing go out from now on; of one that is held already the reason is another."""
    tx.write(DELETE_HOLD, {})
    tx.write(INSERT_HOLD, {"why": reason, "now": tx.now})


def end_hold(tx: Transaction) -> bool:
    """Hold nothing any more; whether something was held."""
    return tx.change(DELETE_HOLD, {}) > 0
