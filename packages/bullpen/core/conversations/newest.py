"""Conversations in a list: the message that each began with, and how it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from sqlalchemy import bindparam, func, select

from bullpen.core.conversations.members import NAMES, Stand, count
from bullpen.core.models import ATTEMPTS, MESSAGES
from bullpen.core.models.base import const
from bullpen.core.queue.browse import Seen
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

M, A = MESSAGES.c, ATTEMPTS.c

FILTERS = ("agent", "channel", "sender_id")

COST: Statement[tuple[float]] = Statement(
    select(func.coalesce(func.sum(A.cost), const(0))).where(
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


@cache
def _page(names: frozenset[str], *, since: bool) -> Statement[tuple[object, ...]]:
    which = [
        M.conversation_id == M.message_id,
        *(M[name] == bindparam(name) for name in sorted(names)),
    ]
    order = M.id.desc()
    if since:
        which.append(M.id > bindparam("since"))
        order = M.id.asc()
    columns = (M[name] for name in NAMES)
    return Statement(select(*columns).where(*which).order_by(order).limit(bindparam("limit")))


def conversations(
    tx: Transaction, wanted: Mapping[str, str | None], since: int | None, limit: int
) -> list[Begun]:
    """The newest ones of the last day and those that are not through, the newest first.

    With a number those that began after it, the oldest first. `wanted` has what their first
    messages have in common, of FILTERS; None is anything.
    """
    given = {name: wanted[name] for name in FILTERS if wanted.get(name) is not None}
    for value in given.values():
        check_text(str(value), tx.settings.message_bytes, "what is looked for")
    values: dict[str, object] = {**given, "limit": limit}
    if since is not None:
        values["since"] = since
    rows = tx.all(_page(frozenset(given), since=since is not None), values)
    return [_begun(tx, Seen(*row)) for row in rows]  # type: ignore[arg-type]


def _begun(tx: Transaction, first: Seen) -> Begun:
    counts = count(tx, first.conversation_id)
    cost = tx.one(COST, {"conversation": first.conversation_id})
    return Begun(first, counts.stand, counts.messages, 0.0 if cost is None else float(cost[0]))
