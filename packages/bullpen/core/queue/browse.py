"""Messages as they are looked at: one, or many by what they have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields

from sqlalchemy import Select, Table, bindparam, select, union_all

from bullpen.core.errors import UnknownMessage
from bullpen.core.models import MESSAGES, MESSAGES_ARCHIVE
from bullpen.core.states import MessageState
from bullpen.core.store.listing import MAX_ROW_ID, TablePager
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

MAX_ID_DIGITS = 18
"""Longer numbers fit into no database's integer."""


@dataclass(frozen=True, slots=True)
class MessageRecord:
    """A message with all that is known of it. The fields are in the order of their columns."""

    id: int
    message_id: str
    channel: str
    sender: str
    sender_id: str | None
    message: str
    agent: str
    from_agent: str | None
    files: str | None
    status: str
    retry_count: int
    crash_count: int
    last_error: str | None
    error_kind: str | None
    claimed_by: str | None
    conversation_id: str
    parent_id: str | None
    hop: int
    team_id: str | None
    reply_to: str | None
    priority: int
    available_at: int
    deadline: int | None
    payload: str | None
    schema: str | None
    created_at: int
    updated_at: int


_COLUMN_NAMES = tuple(each.name for each in fields(MessageRecord))


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFilter:
    """What the messages have in common; None is anything."""

    status: MessageState | None = None
    agent: str | None = None
    channel: str | None = None
    conversation_id: str | None = None


def _select_rows(table: Table) -> Select[tuple[object, ...]]:
    return select(*(table.c[name] for name in _COLUMN_NAMES))


SELECT_MESSAGE: Statement[tuple[object, ...]] = Statement(
    lambda: union_all(
        *(
            _select_rows(table).where(table.c.message_id == bindparam("message_id"))
            for table in (MESSAGES, MESSAGES_ARCHIVE)
        )
    )
)

SELECT_MESSAGE_BY_NUMBER: Statement[tuple[object, ...]] = Statement(
    lambda: _select_rows(MESSAGES).where(MESSAGES.c.id == bindparam("number"))
)


MESSAGE_LISTING = TablePager(MESSAGES, _COLUMN_NAMES)


def get_message(tx: Transaction, message_id: str) -> MessageRecord:
    """The message of this id, archived or not."""
    check_text(message_id, tx.settings.message_bytes, "the message's id")
    row = tx.one(SELECT_MESSAGE, {"message_id": message_id})
    if row is None:
        raise UnknownMessage(f"there is no message {message_id[:60]!r}")
    return _message_record(row)


def get_message_by_number(tx: Transaction, number: str) -> MessageRecord:
    """The live message of this number, or of this id where it is none."""
    if number.isascii() and number.isdecimal() and len(number) <= MAX_ID_DIGITS:
        row = tx.one(SELECT_MESSAGE_BY_NUMBER, {"number": int(number)})
        if row is not None:
            return _message_record(row)
    return get_message(tx, number)


def list_messages_by_number(tx: Transaction, numbers: Sequence[int]) -> list[MessageRecord]:
    """The live messages of these numbers, in this order; one that is gone is left out."""
    rows = tx.one_each(SELECT_MESSAGE_BY_NUMBER, [{"number": each} for each in numbers])
    return [_message_record(row) for row in rows if row is not None]


def list_messages(
    tx: Transaction, wanted: MessageFilter, since: int | None, limit: int, *, upto: int = MAX_ROW_ID
) -> list[MessageRecord]:
    """The next messages after this number, up to another; without one the newest first."""
    return [
        _message_record(row) for row in MESSAGE_LISTING.page(tx, asdict(wanted), since, limit, upto)
    ]


def _message_record(row: tuple[object, ...]) -> MessageRecord:
    return MessageRecord(*row)  # type: ignore[arg-type]
