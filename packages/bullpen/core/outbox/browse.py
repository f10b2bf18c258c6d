"""Responses as they are looked at: one, many by what they have in common, or what is to be sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields

from sqlalchemy import Select, Table, bindparam, select, union_all

from bullpen.core.errors import UnknownResponse
from bullpen.core.message import PULL_CHANNELS
from bullpen.core.models import RESPONSES, RESPONSES_ARCHIVE
from bullpen.core.models.base import const
from bullpen.core.outbox.delivery import MAX_ID_DIGITS
from bullpen.core.outbox.hold import find_hold
from bullpen.core.states import ResponseState
from bullpen.core.store.listing import MAX_ROW_ID, TablePager
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

R = RESPONSES.c


@dataclass(frozen=True, slots=True)
class ResponseRecord:
    """A response with all that is known of it. The fields are in the order of their columns."""

    id: int
    message_id: str
    channel: str
    sender: str
    sender_id: str | None
    message: str
    original_message: str
    agent: str
    files: str | None
    metadata: str | None
    status: str
    conversation_id: str
    seq: int
    delivery_attempts: int
    parts_sent: int
    possible_duplicate: bool
    available_at: int
    expires_at: int
    last_error: str | None
    created_at: int
    acked_at: int | None


_COLUMN_NAMES = tuple(each.name for each in fields(ResponseRecord))
_DUPLICATE_INDEX = _COLUMN_NAMES.index("possible_duplicate")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseFilter:
    """What the responses have in common; None is anything."""

    status: ResponseState | None = None
    channel: str | None = None
    agent: str | None = None
    message_id: str | None = None
    conversation_id: str | None = None


def _select_rows(table: Table) -> Select[tuple[object, ...]]:
    return select(*(table.c[name] for name in _COLUMN_NAMES))


SELECT_RESPONSE: Statement[tuple[object, ...]] = Statement(
    lambda: union_all(
        *(
            _select_rows(table).where(table.c.id == bindparam("response"))
            for table in (RESPONSES, RESPONSES_ARCHIVE)
        )
    )
)

SELECT_RESPONSES_TO: Statement[tuple[object, ...]] = Statement(
    lambda: union_all(
        *(
            _select_rows(table).where(table.c.message_id == bindparam("message_id"))
            for table in (RESPONSES, RESPONSES_ARCHIVE)
        )
    )
)

# A client that has leased one has moved `available_at` to the end of its lease.
SELECT_DELIVERABLE: Statement[tuple[object, ...]] = Statement(
    lambda: (
        _select_rows(RESPONSES)
        .where(
            R.status == const(ResponseState.PENDING.value),
            R.channel == bindparam("channel"),
            R.available_at <= bindparam("now"),
            R.expires_at > bindparam("now"),
            R.id > bindparam("since"),
        )
        .order_by(R.id)
        .limit(bindparam("limit"))
    )
)


RESPONSE_LISTING = TablePager(RESPONSES, _COLUMN_NAMES)


def get_response(tx: Transaction, number: str) -> ResponseRecord:
    """The response of this number, archived or not."""
    row = None
    if number.isascii() and number.isdecimal() and len(number) <= MAX_ID_DIGITS:
        row = tx.one(SELECT_RESPONSE, {"response": int(number)})
    if row is None:
        raise UnknownResponse(f"there is no response {number[:60]!r}")
    return _response_record(row)


def list_responses(
    tx: Transaction,
    wanted: ResponseFilter,
    since: int | None,
    limit: int,
    *,
    upto: int = MAX_ROW_ID,
) -> list[ResponseRecord]:
    """The next responses after this number, up to another; without one the newest first."""
    return [
        _response_record(row)
        for row in RESPONSE_LISTING.page(tx, asdict(wanted), since, limit, upto)
    ]


def list_deliverable(tx: Transaction, channel: str, since: int, limit: int) -> list[ResponseRecord]:
    """What may be delivered on a channel now, the oldest first.

    What is held is not among it; where no client sends it, people read what waits all the same.
    """
    check_text(channel, tx.settings.message_bytes, "the channel")
    if channel not in PULL_CHANNELS and find_hold(tx) is not None:
        return []
    values = {"channel": channel, "since": since, "limit": limit, "now": tx.now}
    return [_response_record(row) for row in tx.all(SELECT_DELIVERABLE, values)]


def list_responses_to(tx: Transaction, message_ids: Sequence[str]) -> list[ResponseRecord]:
    """What these messages were answered, archived responses included, in order."""
    found = {
        seen.id: seen
        for message_id in message_ids
        for seen in map(_response_record, tx.all(SELECT_RESPONSES_TO, {"message_id": message_id}))
    }
    return [found[number] for number in sorted(found)]


def _response_record(row: tuple[object, ...]) -> ResponseRecord:
    # SQLite has no booleans.
    values = [bool(value) if at == _DUPLICATE_INDEX else value for at, value in enumerate(row)]
    return ResponseRecord(*values)  # type: ignore[arg-type]
