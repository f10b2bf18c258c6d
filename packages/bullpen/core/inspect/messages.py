"""Messages, live and archived: listed, found by number, and one in full."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import assert_never

from sqlalchemy import ColumnElement, Table, bindparam, func, select

from bullpen.core.errors import UnknownMessage
from bullpen.core.message import Message
from bullpen.core.models import LANES, MESSAGES, MESSAGES_ARCHIVE
from bullpen.core.models.archive import MESSAGE_TABLES, in_conversation, live_and_archived
from bullpen.core.models.base import const
from bullpen.core.queue.lanes import ready
from bullpen.core.states import ARCHIVED_STATES, NEEDS_PERSON_STATES, MessageState
from bullpen.core.store.paging import MAX_ROW_ID, JsonIn, TablePager, encode_ids
from bullpen.core.store.scan import (
    BatchCursor,
    BoundScan,
    IndexScan,
    RowRef,
    Selection,
    by_number,
    scan_in_state,
)
from bullpen.core.store.statement import Statement, columns
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

M = MESSAGES.c
L = LANES.c

SELECT_CLAIMED_BATCHES: Statement[tuple[str]] = Statement(
    lambda: select(L.batch).where(L.lease_expires_at.is_not(None), L.batch.is_not(None))
)


def _pending() -> ColumnElement[bool]:
    return M.status == const(MessageState.PENDING.value)


def _in_states(*states: MessageState) -> tuple[ColumnElement[bool], ...]:
    # Named twice, so that the partial index is recognised.
    named = M.status.in_([const(each.value) for each in states])
    return named, M.status == bindparam("state")


def _conversation_scan(table: Table) -> IndexScan:
    return IndexScan(table, lambda: (in_conversation(table),), ("id",), "created_at")


DEAD_OR_HELD_SCAN = IndexScan(
    MESSAGES,
    lambda: _in_states(*NEEDS_PERSON_STATES),
    ("updated_at", "id"),
    "updated_at",
)
FINISHED_SCAN = IndexScan(
    MESSAGES, lambda: _in_states(*ARCHIVED_STATES), ("updated_at", "id"), "updated_at"
)
READY_SCAN = IndexScan(MESSAGES, lambda: (ready(),), ("agent", "sort_key", "id"), "created_at")
READY_IN_LANE_SCAN = IndexScan(MESSAGES, lambda: (ready(),), ("sort_key", "id"), "created_at")
DELAYED_SCAN = IndexScan(
    MESSAGES, lambda: (_pending(), ~M.ready), ("available_at", "id"), "created_at"
)
PROCESSING_SCAN = IndexScan(
    MESSAGES,
    lambda: (JsonIn(M.id, "rows"), M.status == const(MessageState.PROCESSING.value)),
    ("id",),
    "created_at",
)
BY_ID = {table: by_number(table) for table in MESSAGE_TABLES}
BY_ID_IN_STATE = {table: scan_in_state(road) for table, road in BY_ID.items()}
BY_CONVERSATION = {table: _conversation_scan(table) for table in MESSAGE_TABLES}
BY_CONVERSATION_IN_STATE = {table: scan_in_state(road) for table, road in BY_CONVERSATION.items()}


def message_scans(
    tx: Transaction, states: Sequence[MessageState], selection: Selection
) -> list[BoundScan]:
    """Where the live messages of these states are found, a state after the other."""
    if selection.conversation is not None:
        road = BY_CONVERSATION_IN_STATE[MESSAGES]
        return [BoundScan(road, {"state": state.value}) for state in states]
    return [way for state in states for way in _scans_of_state(tx, state, selection)]


def _scans_of_state(tx: Transaction, state: MessageState, selection: Selection) -> list[BoundScan]:
    match state:
        case MessageState.PENDING:
            ready = READY_SCAN if selection.agent is None else READY_IN_LANE_SCAN
            return [BoundScan(ready), BoundScan(DELAYED_SCAN)]
        case MessageState.PROCESSING:
            rows = [
                row for (batch,) in tx.all(SELECT_CLAIMED_BATCHES, {}) for row in json.loads(batch)
            ]
            return [BoundScan(PROCESSING_SCAN, {"rows": encode_ids(rows)})]
        case MessageState.DEAD | MessageState.HELD:
            return [BoundScan(DEAD_OR_HELD_SCAN, {"state": state.value})]
        case MessageState.COMPLETED | MessageState.CANCELLED | MessageState.EXPIRED:
            return [BoundScan(FINISHED_SCAN, {"state": state.value})]
        case _:
            assert_never(state)


MAX_ID_DIGITS = 18
"""Longer numbers fit into no database's integer."""


@dataclass(frozen=True, slots=True)
class MessageRecord(Message):
    """A message with all that is known of it."""

    status: str
    last_error: str | None
    error_kind: str | None
    claimed_by: str | None
    available_at: int
    updated_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFilter:
    """What the messages have in common; None is anything."""

    status: MessageState | None = None
    agent: str | None = None
    channel: str | None = None
    conversation_id: str | None = None


SELECT_MESSAGE: Statement[MessageRecord] = Statement(
    lambda: live_and_archived(
        MESSAGE_TABLES,
        lambda table: select(*columns(MessageRecord, table)).where(
            table.c.message_id == bindparam("message_id")
        ),
    ),
    MessageRecord,
)

SELECT_MESSAGE_BY_NUMBER: Statement[MessageRecord] = Statement(
    lambda: select(*columns(MessageRecord, MESSAGES)).where(M.id == bindparam("number")),
    MessageRecord,
)


MESSAGE_LISTING = TablePager(MESSAGES, MessageRecord)


def get_message(tx: Transaction, message_id: str) -> MessageRecord:
    """The message of this id, archived or not."""
    check_text(message_id, tx.settings.message_bytes, "the message's id")
    message = tx.one(SELECT_MESSAGE, {"message_id": message_id})
    if message is None:
        raise UnknownMessage(f"there is no message {message_id[:60]!r}")
    return message


def get_message_by_number(tx: Transaction, number: str) -> MessageRecord:
    """The live message of this number, or of this id where it is none."""
    if number.isascii() and number.isdecimal() and len(number) <= MAX_ID_DIGITS:
        message = tx.one(SELECT_MESSAGE_BY_NUMBER, {"number": int(number)})
        if message is not None:
            return message
    return get_message(tx, number)


def list_messages_by_number(tx: Transaction, numbers: Sequence[int]) -> list[MessageRecord]:
    """The live messages of these numbers, in this order; one that is gone is left out."""
    messages = tx.one_each(SELECT_MESSAGE_BY_NUMBER, [{"number": each} for each in numbers])
    return [each for each in messages if each is not None]


def list_messages(
    tx: Transaction, wanted: MessageFilter, since: int | None, limit: int, *, upto: int = MAX_ROW_ID
) -> list[MessageRecord]:
    """The next messages after this number, up to another; without one the newest first."""
    return MESSAGE_LISTING.page(tx, asdict(wanted), since, limit, upto)


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
    if state in NEEDS_PERSON_STATES and selection.conversation is None:
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
