"""Messages in a list, the newest first; each state by the index that has it, if there is one."""

from __future__ import annotations

from functools import cache

from sqlalchemy import Table, bindparam, func, select

from bullpen.core.models import LANES, MESSAGES, MESSAGES_ARCHIVE
from bullpen.core.models.base import const
from bullpen.core.queue.browse import MessageRecord, get_message
from bullpen.core.queue.roads import (
    BY_CONVERSATION,
    BY_CONVERSATION_IN_STATE,
    BY_ID,
    BY_ID_IN_STATE,
)
from bullpen.core.queue.selection import Selection
from bullpen.core.queue.walk import BatchCursor, BoundScan, RowRef, message_scans
from bullpen.core.states import ARCHIVED_STATES, MessageState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

L = LANES.c

MAX_SORTED_MESSAGES = 5_000
"""So many waiting messages are sorted by their numbers; of more the newest are met at once."""
BATCH_MESSAGES = 1_000
ID_MARGIN = 1_000
"""A number is given before its transaction ends: so far they may be out of the order of time."""

COUNT_PENDING: Statement[tuple[int | None]] = Statement(
    lambda: select(func.sum(L.pending)).where(L.pending > const(0))
)


@cache
def _select_last_before(table: Table) -> Statement[tuple[int]]:
    """The number of the newest message that is too old: all before it are."""
    c = table.c
    older = select(c.id).where(c.created_at < bindparam("since"))
    return Statement(lambda: older.order_by(c.id.desc()).limit(const(1)))


def id_floor(tx: Transaction, table: Table, selection: Selection) -> dict[str, object]:
    """The number above which everything is that is new enough, if it has to be."""
    if selection.since is None:
        return {}
    row = tx.one(_select_last_before(table), {"since": selection.since})
    return {"above": 0 if row is None else row[0] - ID_MARGIN}


def newest_messages(
    tx: Transaction,
    selection: Selection,
    state: MessageState | None,
    limit: int,
    *,
    archived: bool = False,
) -> list[MessageRecord]:
    """Those that are meant, the newest first; with `archived` the archived ones as well.

    The dead and the held that became so last are the newest.
    """
    found = _newest_live(tx, selection, state, limit)
    if archived and (state is None or state in ARCHIVED_STATES):
        found += _newest_by_id(tx, MESSAGES_ARCHIVE, selection, state, limit)
        found.sort(key=lambda each: each.id, reverse=True)
    return [get_message(tx, each.message_id) for each in found[:limit]]


def _newest_live(
    tx: Transaction, selection: Selection, state: MessageState | None, limit: int
) -> list[RowRef]:
    if state in (MessageState.DEAD, MessageState.HELD) and selection.conversation is None:
        return BatchCursor(message_scans(tx, (state,), selection), selection, newest=True).next(
            tx, limit
        )
    if state is MessageState.PROCESSING or (state is MessageState.PENDING and _has_few_pending(tx)):
        return _read_all(tx, BatchCursor(message_scans(tx, (state,), selection), selection))[:limit]
    return _newest_by_id(tx, MESSAGES, selection, state, limit)


def _has_few_pending(tx: Transaction) -> bool:
    row = tx.one(COUNT_PENDING, {})
    return row is None or (row[0] or 0) <= MAX_SORTED_MESSAGES


def _read_all(tx: Transaction, walk: BatchCursor) -> list[RowRef]:
    found = []
    while piece := walk.next(tx, BATCH_MESSAGES):
        found += piece
    return sorted(found, key=lambda each: each.id, reverse=True)


def _newest_by_id(
    tx: Transaction, table: Table, selection: Selection, state: MessageState | None, limit: int
) -> list[RowRef]:
    together = selection.conversation is not None
    if state is None:
        road = (BY_CONVERSATION if together else BY_ID)[table]
        way = BoundScan(road)
    else:
        road = (BY_CONVERSATION_IN_STATE if together else BY_ID_IN_STATE)[table]
        way = BoundScan(road, {"state": state.value})
    if not together:
        way.values.update(id_floor(tx, table, selection))
    return BatchCursor([way], selection, newest=True).next(tx, limit)
