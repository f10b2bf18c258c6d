"""Read messages, live and archived: by id, by page, the newest ones, and by scans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import assert_never

from sqlalchemy import ColumnElement, Table, bindparam, func, select

from bullpen.core.errors import UnknownMessage
from bullpen.core.message import Message
from bullpen.core.models import LANES, MESSAGES, MESSAGES_ARCHIVE
from bullpen.core.models.archive import MESSAGE_TABLES, in_conversation, live_and_archived
from bullpen.core.models.base import const, decode_numbers
from bullpen.core.queue.lanes import pending, ready
from bullpen.core.states import ARCHIVED_STATES, NEEDS_PERSON_STATES, MessageState
from bullpen.core.store.paging import (
    MAX_ROW_ID,
    JsonIn,
    TablePager,
    cut_page,
    encode_ids,
    parse_row_id,
)
from bullpen.core.store.scan import (
    BatchCursor,
    BoundScan,
    IndexScan,
    RowRef,
    Selection,
    newest_by_id,
)
from bullpen.core.store.statement import Statement, columns
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text, describe_unknown

M = MESSAGES.c
L = LANES.c

MAX_SORTED_MESSAGES = 5_000
"""The most pending messages that are read and sorted by id; of more, the newest are found soon."""

BATCH_MESSAGES = 1_000
FETCHED_TOGETHER = 16
"""The number of messages that are fetched at once for a page that may be cut."""


@dataclass(frozen=True, slots=True)
class MessageRecord(Message):
    """A message with all of its columns."""

    status: str
    last_error: str | None
    error_kind: str | None
    claimed_by: str | None
    available_at: int
    updated_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFilter:
    """A filter for messages; None matches all."""

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
    check_text(message_id, tx.settings.message_bytes, "the message id")
    message = tx.one(SELECT_MESSAGE, {"message_id": message_id})
    if message is None:
        raise UnknownMessage(describe_unknown("message", message_id))
    return message


def get_message_by_number(tx: Transaction, number: str) -> MessageRecord:
    """The live message of this row id, or the message of this `message_id`."""
    row_id = parse_row_id(number)
    if row_id is not None:
        message = tx.one(SELECT_MESSAGE_BY_NUMBER, {"number": row_id})
        if message is not None:
            return message
    return get_message(tx, number)


def list_messages_by_number(tx: Transaction, numbers: Sequence[int]) -> list[MessageRecord]:
    """The live messages with these row ids, in this order, without deleted ones."""
    batches = [
        numbers[at : at + FETCHED_TOGETHER] for at in range(0, len(numbers), FETCHED_TOGETHER)
    ]
    found = (
        each
        for batch in batches
        for each in tx.one_each(SELECT_MESSAGE_BY_NUMBER, [{"number": number} for number in batch])
    )
    return cut_page(tx, (each for each in found if each is not None))


def list_messages(
    tx: Transaction, wanted: MessageFilter, since: int | None, limit: int, *, upto: int = MAX_ROW_ID
) -> list[MessageRecord]:
    """The next messages after a row id, up to another; without `since`, the newest first."""
    return MESSAGE_LISTING.page(tx, asdict(wanted), since, limit, upto)


def newest_messages(
    tx: Transaction,
    selection: Selection,
    state: MessageState | None,
    limit: int,
    *,
    archived: bool = False,
) -> list[MessageRecord]:
    """The selected messages, newest first; with `archived`, also archived ones.

    Dead and held messages are ordered by the time when they became dead or held.
    """
    refs = _newest_live(tx, selection, state, limit)
    if archived and (state is None or state in ARCHIVED_STATES):
        refs += _newest_by_id(tx, MESSAGES_ARCHIVE, selection, state, limit)
        refs.sort(key=lambda each: each.id, reverse=True)
    wanted = [{"message_id": each.message_id} for each in refs[:limit]]
    return [each for each in tx.one_each(SELECT_MESSAGE, wanted) if each is not None]


def list_dead_or_held(
    tx: Transaction,
    state: MessageState,
    *,
    agent: str | None = None,
    kind: str | None = None,
    since: int | None = None,
    limit: int,
) -> list[MessageRecord]:
    """The dead or the held messages: the latest first, or after an id the oldest first."""
    assert state in NEEDS_PERSON_STATES
    selection = Selection(agent=agent, kind=kind)
    values: dict[str, object] = {"state": state.value}
    if since is None:
        scan = BoundScan(DEAD_OR_HELD_SCAN, values)
    else:
        scan = BoundScan(DEAD_OR_HELD_BY_ID_SCAN, {**values, "above": since})
    refs = BatchCursor([scan], selection, newest=since is None).next(tx, limit)
    return list_messages_by_number(tx, [each.id for each in refs])


COUNT_PENDING: Statement[tuple[int | None]] = Statement(
    lambda: select(func.sum(L.pending)).where(L.pending > const(0))
)


def _newest_live(
    tx: Transaction, selection: Selection, state: MessageState | None, limit: int
) -> list[RowRef]:
    if state in NEEDS_PERSON_STATES and selection.conversation is None:
        cursor = BatchCursor(message_scans(tx, (state,), selection), selection, newest=True)
        return cursor.next(tx, limit)
    if state is MessageState.PROCESSING or (state is MessageState.PENDING and _has_few_pending(tx)):
        return _read_all(tx, BatchCursor(message_scans(tx, (state,), selection), selection))[:limit]
    return _newest_by_id(tx, MESSAGES, selection, state, limit)


def _has_few_pending(tx: Transaction) -> bool:
    row = tx.one(COUNT_PENDING, {})
    return row is None or (row[0] or 0) <= MAX_SORTED_MESSAGES


def _read_all(tx: Transaction, cursor: BatchCursor) -> list[RowRef]:
    refs = []
    while batch := cursor.next(tx, BATCH_MESSAGES):
        refs += batch
    return sorted(refs, key=lambda each: each.id, reverse=True)


def _newest_by_id(
    tx: Transaction, table: Table, selection: Selection, state: MessageState | None, limit: int
) -> list[RowRef]:
    if selection.conversation is None:
        return newest_by_id(tx, table, selection, None if state is None else state.value, limit)
    values: dict[str, object] = {} if state is None else {"state": state.value}
    scan = BoundScan(_conversation_scan(table, in_state=state is not None), values)
    return BatchCursor([scan], selection, newest=True).next(tx, limit)


SELECT_CLAIMED_BATCHES: Statement[tuple[str]] = Statement(
    lambda: select(L.batch).where(L.lease_expires_at.is_not(None), L.batch.is_not(None))
)


def _in_states(*states: MessageState) -> tuple[ColumnElement[bool], ...]:
    # The state is named twice, so that the partial index is used.
    named = M.status.in_([const(each.value) for each in states])
    return named, M.status == bindparam("state")


DEAD_OR_HELD_SCAN = IndexScan(
    MESSAGES,
    lambda: _in_states(*NEEDS_PERSON_STATES),
    ("updated_at", "id"),
    "updated_at",
)

# Ordered by two columns, so that no database scans the primary key for the few dead rows.
DEAD_OR_HELD_BY_ID_SCAN = IndexScan(
    MESSAGES,
    lambda: _in_states(*NEEDS_PERSON_STATES),
    ("id", "updated_at"),
    "updated_at",
)

FINISHED_SCAN = IndexScan(
    MESSAGES, lambda: _in_states(*ARCHIVED_STATES), ("updated_at", "id"), "updated_at"
)

READY_SCAN = IndexScan(MESSAGES, lambda: (ready(),), ("agent", "sort_key", "id"), "created_at")

READY_IN_LANE_SCAN = IndexScan(MESSAGES, lambda: (ready(),), ("sort_key", "id"), "created_at")

DELAYED_SCAN = IndexScan(
    MESSAGES, lambda: (pending(), ~M.ready), ("available_at", "id"), "created_at"
)

PROCESSING_SCAN = IndexScan(
    MESSAGES,
    lambda: (JsonIn(M.id, "rows"), M.status == const(MessageState.PROCESSING.value)),
    ("id",),
    "created_at",
)


def message_scans(
    tx: Transaction, states: Sequence[MessageState], selection: Selection
) -> list[BoundScan]:
    """The scans that find the live messages in these states, one state after the other."""
    if selection.conversation is not None:
        scan = _conversation_scan(MESSAGES, in_state=True)
        return [BoundScan(scan, {"state": state.value}) for state in states]
    return [scan for state in states for scan in _scans_of_state(tx, state, selection)]


def _scans_of_state(tx: Transaction, state: MessageState, selection: Selection) -> list[BoundScan]:
    match state:
        case MessageState.PENDING:
            ready = READY_SCAN if selection.agent is None else READY_IN_LANE_SCAN
            return [BoundScan(ready), BoundScan(DELAYED_SCAN)]
        case MessageState.PROCESSING:
            rows = [
                row
                for (batch,) in tx.all(SELECT_CLAIMED_BATCHES, {})
                for row in decode_numbers(batch)
            ]
            return [BoundScan(PROCESSING_SCAN, {"rows": encode_ids(rows)})]
        case MessageState.DEAD | MessageState.HELD:
            return [BoundScan(DEAD_OR_HELD_SCAN, {"state": state.value})]
        case MessageState.COMPLETED | MessageState.CANCELLED | MessageState.EXPIRED:
            return [BoundScan(FINISHED_SCAN, {"state": state.value})]
        case _:
            assert_never(state)


@cache
def _conversation_scan(table: Table, *, in_state: bool) -> IndexScan:
    if in_state:
        return _conversation_scan(table, in_state=False).in_state()
    return IndexScan(table, lambda: (in_conversation(table),), ("id",), "created_at")
