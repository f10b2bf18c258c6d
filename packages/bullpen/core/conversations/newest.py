"""Conversations in a list: the message that each began with, and how it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import bindparam, func, select

from bullpen.core.conversations.members import NAMES, Stand, count
from bullpen.core.models import ATTEMPTS, MESSAGES
from bullpen.core.models.base import const
from bullpen.core.queue.browse import Seen
from bullpen.core.store.listing import EVERY, Listing
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

M = MESSAGES.c
A = ATTEMPTS.c

COST: Statement[tuple[float]] = Statement(
    lambda: select(func.coalesce(func.sum(A.cost), const(0))).where(
        A.conversation_id == bindparam("conversation")
    )
)


@dataclass(frozen=True, slots=True)
class Begun:
    """A conversation by its beginning."""

    first: Seen
    stand: Stand
    messages: int
    cost: float


LISTING = Listing(MESSAGES, NAMES, lambda: M.conversation_id == M.message_id)


def conversations(
    tx: Transaction,
    wanted: Mapping[str, object],
    since: int | None,
    limit: int,
    *,
    upto: int = EVERY,
) -> list[Begun]:
    """The newest ones of the last day and those that are not through, the newest first.

    With a number those that began after it and up to another, the oldest first. `wanted` has what
    their first messages have in common, by the names of columns; None is anything.
    """
    rows = LISTING.page(tx, wanted, since, limit, upto)
    return [_begun(tx, Seen(*row)) for row in rows]  # type: ignore[arg-type]


def _begun(tx: Transaction, first: Seen) -> Begun:
    counts = count(tx, first.conversation_id)
    return Begun(first, counts.stand, counts.messages, cost_of(tx, first.conversation_id))


def cost_of(tx: Transaction, conversation_id: str) -> float:
    """What its runs have cost so far, in dollars."""
    row = tx.one(COST, {"conversation": conversation_id})
    return 0.0 if row is None else float(row[0])
