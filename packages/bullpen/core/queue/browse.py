"""Messages as they are looked at: one, or many by what they have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields

from sqlalchemy import Select, Table, bindparam, select, union_all

from bullpen.core.errors import UnknownMessage
from bullpen.core.models import ARCHIVE, MESSAGES
from bullpen.core.states import MessageState
from bullpen.core.store.listing import EVERY, Listing
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

ID_DIGITS = 18
"""Longer numbers fit into no database's integer."""


@dataclass(frozen=True, slots=True)
class Seen:
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


_NAMES = tuple(each.name for each in fields(Seen))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the messages have in common; None is anything."""

    status: MessageState | None = None
    agent: str | None = None
    channel: str | None = None
    conversation_id: str | None = None


def _of(table: Table) -> Select[tuple[object, ...]]:
    return select(*(table.c[name] for name in _NAMES))


ONE: Statement[tuple[object, ...]] = Statement(
    lambda: union_all(
        *(
            _of(table).where(table.c.message_id == bindparam("message_id"))
            for table in (MESSAGES, ARCHIVE)
        )
    )
)

NUMBERED: Statement[tuple[object, ...]] = Statement(
    lambda: _of(MESSAGES).where(MESSAGES.c.id == bindparam("number"))
)


LISTING = Listing(MESSAGES, _NAMES)


def look_up(tx: Transaction, message_id: str) -> Seen:
    """The message of this id, archived or not."""
    check_text(message_id, tx.settings.message_bytes, "the message's id")
    row = tx.one(ONE, {"message_id": message_id})
    if row is None:
        raise UnknownMessage(f"there is no message {message_id[:60]!r}")
    return _seen(row)


def numbered(tx: Transaction, number: str) -> Seen:
    """The live message of this number, or of this id where it is none."""
    if number.isascii() and number.isdecimal() and len(number) <= ID_DIGITS:
        row = tx.one(NUMBERED, {"number": int(number)})
        if row is not None:
            return _seen(row)
    return look_up(tx, number)


def of_numbers(tx: Transaction, numbers: Sequence[int]) -> list[Seen]:
    """The live messages of these numbers, in this order; one that is gone is left out."""
    rows = tx.one_each(NUMBERED, [{"number": each} for each in numbers])
    return [_seen(row) for row in rows if row is not None]


def browse(
    tx: Transaction, wanted: Wanted, since: int | None, limit: int, *, upto: int = EVERY
) -> list[Seen]:
    """The next messages after this number, up to another; without one the newest first."""
    return [_seen(row) for row in LISTING.page(tx, asdict(wanted), since, limit, upto)]


def _seen(row: tuple[object, ...]) -> Seen:
    return Seen(*row)  # type: ignore[arg-type]
