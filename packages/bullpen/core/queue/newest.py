"""Messages in a list, the newest first; each state by the index that has it, if there is one."""

from __future__ import annotations

from functools import cache

from sqlalchemy import Table, bindparam, func, select

from bullpen.core.models import ARCHIVE, LANES, MESSAGES
from bullpen.core.models.base import const
from bullpen.core.queue.browse import Seen, look_up
from bullpen.core.queue.roads import BY_NUMBER, BY_NUMBER_IN_STATE, TOGETHER, TOGETHER_IN_STATE
from bullpen.core.queue.selection import Selection
from bullpen.core.queue.walk import Found, Walk, Way, ways_to
from bullpen.core.states import ARCHIVED, MessageState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

L = LANES.c

FEW = 5_000
"""So many waiting messages are sorted by their numbers; of more the newest are met at once."""
PIECE = 1_000
MARGIN = 1_000
"""A number is given before its transaction ends: so far they may be out of the order of time."""

PENDING: Statement[tuple[int | None]] = Statement(
    lambda: select(func.sum(L.pending)).where(L.pending > const(0))
)


@cache
def _too_old(table: Table) -> Statement[tuple[int]]:
    """The number of the newest message that is too old: all before it are."""
    c = table.c
    older = select(c.id).where(c.created_at < bindparam("since"))
    return Statement(lambda: older.order_by(c.id.desc()).limit(const(1)))


def above(tx: Transaction, table: Table, selection: Selection) -> dict[str, object]:
    """The number above which everything is that is new enough, if it has to be."""
    if selection.since is None:
        return {}
    row = tx.one(_too_old(table), {"since": selection.since})
    return {"above": 0 if row is None else row[0] - MARGIN}


def newest(
    tx: Transaction,
    selection: Selection,
    state: MessageState | None,
    limit: int,
    *,
    archived: bool = False,
) -> list[Seen]:
    """Those that are meant, the newest first; with `archived` the archived ones as well.

    The dead and the held that became so last are the newest.
    """
    found = _live(tx, selection, state, limit)
    if archived and (state is None or state in ARCHIVED):
        found += _by_number(tx, ARCHIVE, selection, state, limit)
        found.sort(key=lambda each: each.id, reverse=True)
    return [look_up(tx, each.message_id) for each in found[:limit]]


def _live(
    tx: Transaction, selection: Selection, state: MessageState | None, limit: int
) -> list[Found]:
    if state in (MessageState.DEAD, MessageState.HELD) and selection.conversation is None:
        return Walk(ways_to(tx, (state,), selection), selection, newest=True).next(tx, limit)
    if state is MessageState.PROCESSING or (state is MessageState.PENDING and _few(tx)):
        return _all(tx, Walk(ways_to(tx, (state,), selection), selection))[:limit]
    return _by_number(tx, MESSAGES, selection, state, limit)


def _few(tx: Transaction) -> bool:
    row = tx.one(PENDING, {})
    return row is None or (row[0] or 0) <= FEW


def _all(tx: Transaction, walk: Walk) -> list[Found]:
    found = []
    while piece := walk.next(tx, PIECE):
        found += piece
    return sorted(found, key=lambda each: each.id, reverse=True)


def _by_number(
    tx: Transaction, table: Table, selection: Selection, state: MessageState | None, limit: int
) -> list[Found]:
    together = selection.conversation is not None
    if state is None:
        road = (TOGETHER if together else BY_NUMBER)[table]
        way = Way(road)
    else:
        road = (TOGETHER_IN_STATE if together else BY_NUMBER_IN_STATE)[table]
        way = Way(road, {"state": state.value})
    if not together:
        way.values.update(above(tx, table, selection))
    return Walk([way], selection, newest=True).next(tx, limit)
