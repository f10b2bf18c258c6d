"""Responses as they are looked at: one, many by what they have in common, or what is to be sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields

from sqlalchemy import Select, Table, bindparam, select, union_all

from bullpen.core.errors import UnknownResponse
from bullpen.core.message import UNSENT
from bullpen.core.models import RESPONSES, RESPONSES_ARCHIVE
from bullpen.core.models.base import const
from bullpen.core.outbox.delivery import ID_DIGITS
from bullpen.core.outbox.hold import find_hold
from bullpen.core.states import ResponseState
from bullpen.core.store.listing import EVERY, Listing
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

R = RESPONSES.c


@dataclass(frozen=True, slots=True)
class SeenResponse:
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


_NAMES = tuple(each.name for each in fields(SeenResponse))
_DUPLICATE = _NAMES.index("possible_duplicate")


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedResponses:
    """What the responses have in common; None is anything."""

    status: ResponseState | None = None
    channel: str | None = None
    agent: str | None = None
    message_id: str | None = None
    conversation_id: str | None = None


def _of(table: Table) -> Select[tuple[object, ...]]:
    return select(*(table.c[name] for name in _NAMES))


ONE: Statement[tuple[object, ...]] = Statement(
    lambda: union_all(
        *(
            _of(table).where(table.c.id == bindparam("response"))
            for table in (RESPONSES, RESPONSES_ARCHIVE)
        )
    )
)

OF_MESSAGE: Statement[tuple[object, ...]] = Statement(
    lambda: union_all(
        *(
            _of(table).where(table.c.message_id == bindparam("message_id"))
            for table in (RESPONSES, RESPONSES_ARCHIVE)
        )
    )
)

# A client that has leased one has moved `available_at` to the end of its lease.
TO_SEND: Statement[tuple[object, ...]] = Statement(
    lambda: (
        _of(RESPONSES)
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


LISTING = Listing(RESPONSES, _NAMES)


def look_up_response(tx: Transaction, number: str) -> SeenResponse:
    """The response of this number, archived or not."""
    row = None
    if number.isascii() and number.isdecimal() and len(number) <= ID_DIGITS:
        row = tx.one(ONE, {"response": int(number)})
    if row is None:
        raise UnknownResponse(f"there is no response {number[:60]!r}")
    return _seen(row)


def browse_responses(
    tx: Transaction, wanted: WantedResponses, since: int | None, limit: int, *, upto: int = EVERY
) -> list[SeenResponse]:
    """The next responses after this number, up to another; without one the newest first."""
    return [_seen(row) for row in LISTING.page(tx, asdict(wanted), since, limit, upto)]


def to_send(tx: Transaction, channel: str, since: int, limit: int) -> list[SeenResponse]:
    """What may be delivered on a channel now, the oldest first.

    What is held is not among it; where no client sends it, people read what waits all the same.
    """
    check_text(channel, tx.settings.message_bytes, "the channel")
    if channel not in UNSENT and find_hold(tx) is not None:
        return []
    values = {"channel": channel, "since": since, "limit": limit, "now": tx.now}
    return [_seen(row) for row in tx.all(TO_SEND, values)]


def responses_to(tx: Transaction, message_ids: Sequence[str]) -> list[SeenResponse]:
    """What these messages were answered, archived responses included, in order."""
    found = {
        seen.id: seen
        for message_id in message_ids
        for seen in map(_seen, tx.all(OF_MESSAGE, {"message_id": message_id}))
    }
    return [found[number] for number in sorted(found)]


def _seen(row: tuple[object, ...]) -> SeenResponse:
    # SQLite has no booleans.
    values = [bool(value) if at == _DUPLICATE else value for at, value in enumerate(row)]
    return SeenResponse(*values)  # type: ignore[arg-type]
