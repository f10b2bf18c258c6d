"""Read responses, live and archived: by id, by page, the newest ones, and by scans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import assert_never

from sqlalchemy import ColumnElement, Table, bindparam, select

from bullpen.core.errors import UnknownResponse
from bullpen.core.message import PULL_CHANNELS
from bullpen.core.models import RESPONSES, RESPONSES_ARCHIVE
from bullpen.core.models.archive import RESPONSE_TABLES, live_and_archived
from bullpen.core.models.base import const
from bullpen.core.outbox.delivery import Response
from bullpen.core.outbox.hold import find_hold
from bullpen.core.outbox.transitions import pending
from bullpen.core.states import UNDELIVERED_STATES, ResponseState
from bullpen.core.store.paging import MAX_ROW_ID, TablePager, cut_page, parse_row_id
from bullpen.core.store.scan import (
    BatchCursor,
    BoundScan,
    IndexScan,
    RowRef,
    Selection,
    newest_by_id,
    scan_by_id,
)
from bullpen.core.store.statement import Statement, columns
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text, describe_unknown

R = RESPONSES.c


@dataclass(frozen=True, slots=True)
class ResponseRecord(Response):
    """A response with its state."""

    status: str
    available_at: int
    last_error: str | None
    tell_at: int | None
    """Until when the channel client looks up whether it arrived, if its outcome is unknown."""
    created_at: int
    acked_at: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseFilter:
    """A filter for responses; None matches all."""

    status: ResponseState | None = None
    channel: str | None = None
    agent: str | None = None
    message_id: str | None = None
    conversation_id: str | None = None


def _select_response(column: str) -> Statement[ResponseRecord]:
    return Statement(
        lambda: live_and_archived(
            RESPONSE_TABLES,
            lambda table: select(*columns(ResponseRecord, table)).where(
                table.c[column] == bindparam(column)
            ),
        ),
        ResponseRecord,
    )


SELECT_RESPONSE = _select_response("id")

SELECT_RESPONSES_TO = _select_response("message_id")

# A lease moves `available_at` to its expiry, so a leased response is not deliverable.
SELECT_DELIVERABLE: Statement[ResponseRecord] = Statement(
    lambda: (
        select(*columns(ResponseRecord, RESPONSES))
        .where(
            R.status == const(ResponseState.PENDING.value),
            R.channel == bindparam("channel"),
            R.available_at <= bindparam("now"),
            R.expires_at > bindparam("now"),
            R.id > bindparam("since"),
        )
        .order_by(R.id)
        .limit(bindparam("limit"))
    ),
    ResponseRecord,
)

RESPONSE_LISTING = TablePager(RESPONSES, ResponseRecord)


def get_response(tx: Transaction, number: str) -> ResponseRecord:
    """The response of this id, archived or not."""
    row_id = parse_row_id(number)
    response = None if row_id is None else tx.one(SELECT_RESPONSE, {"id": row_id})
    if response is None:
        raise UnknownResponse(describe_unknown("response", number))
    return response


def find_response(tx: Transaction, id_: str) -> ResponseRecord:
    """The response of this number, or the only one to the message of this id."""
    if parse_row_id(id_) is not None:
        return get_response(tx, id_)
    check_text(id_, tx.settings.message_bytes, "the response's id")
    found = tx.all(SELECT_RESPONSES_TO, {"message_id": id_})
    if not found:
        raise UnknownResponse(f"response {id_[:60]!r} does not exist")
    if len(found) > 1:
        numbers = ", ".join(str(each.id) for each in found)
        raise UnknownResponse(
            f"message {id_[:60]} has {len(found)} responses: {numbers}",
            hint="Use the number of one of them.",
        )
    return found[0]


def list_responses(
    tx: Transaction,
    wanted: ResponseFilter,
    since: int | None,
    limit: int,
    *,
    upto: int = MAX_ROW_ID,
) -> list[ResponseRecord]:
    """The next responses after an id, up to another; without `since`, the newest first."""
    return RESPONSE_LISTING.page(tx, asdict(wanted), since, limit, upto)


def list_deliverable(tx: Transaction, channel: str, since: int, limit: int) -> list[ResponseRecord]:
    """The responses that can be delivered on a channel now, oldest first.

    None while there is a hold, except on channels without a client, where people read them.
    """
    check_text(channel, tx.settings.message_bytes, "the channel")
    if channel not in PULL_CHANNELS and find_hold(tx) is not None:
        return []
    values = {"channel": channel, "since": since, "limit": limit, "now": tx.now}
    return tx.page(SELECT_DELIVERABLE, values)


def list_responses_to(tx: Transaction, message_ids: Sequence[str]) -> list[ResponseRecord]:
    """The responses to these messages, archived ones included, by id."""
    responses = (
        response
        for message_id in message_ids
        for response in tx.page(SELECT_RESPONSES_TO, {"message_id": message_id})
    )
    found = {each.id: each for each in cut_page(tx, responses)}
    return [found[number] for number in sorted(found)]


def newest_responses(
    tx: Transaction,
    selection: Selection,
    states: Sequence[ResponseState],
    limit: int,
    *,
    archived: bool = False,
) -> list[ResponseRecord]:
    """The selected responses in some states or in any, newest first.

    With `archived`, also archived ones.
    """
    refs = _newest_in_table(tx, RESPONSES, selection, states, limit)
    if archived:
        refs += _newest_in_table(tx, RESPONSES_ARCHIVE, selection, states, limit)
    refs.sort(key=lambda each: each.id, reverse=True)
    wanted = [{"id": each.id} for each in refs[:limit]]
    return [each for each in tx.one_each(SELECT_RESPONSE, wanted) if each is not None]


def _newest_in_table(
    tx: Transaction,
    table: Table,
    selection: Selection,
    states: Sequence[ResponseState],
    limit: int,
) -> list[RowRef]:
    """The newest of each state, which include the newest of all."""
    if not states:
        return newest_by_id(tx, table, selection, None, limit)
    refs = []
    for state in states:
        if table is RESPONSES and state in UNDELIVERED_STATES:
            cursor = BatchCursor([_scan_of_state(state, selection)], selection, newest=True)
            refs += cursor.next(tx, limit)
        else:
            refs += newest_by_id(tx, table, selection, state.value, limit)
    return refs


def _lost() -> ColumnElement[bool]:
    # The state is named twice, by the scans too, so that the partial index is used.
    return R.status.in_([const(each.value) for each in UNDELIVERED_STATES])


UNDELIVERED_SCAN = IndexScan(
    RESPONSES, lambda: (_lost(), R.status == bindparam("state")), ("id",), "created_at"
)

PENDING_SCAN = IndexScan(
    RESPONSES, lambda: (pending(),), ("channel", "available_at", "id"), "created_at"
)

PENDING_IN_CHANNEL_SCAN = IndexScan(
    RESPONSES, lambda: (pending(),), ("available_at", "id"), "created_at"
)


def response_scans(states: Sequence[ResponseState], selection: Selection) -> list[BoundScan]:
    """The scans that find the live responses in these states, one state after the other."""
    return [_scan_of_state(state, selection) for state in states]


def _scan_of_state(state: ResponseState, selection: Selection) -> BoundScan:
    match state:
        case ResponseState.DEAD | ResponseState.UNKNOWN:
            return BoundScan(UNDELIVERED_SCAN, {"state": state.value})
        case ResponseState.PENDING:
            return BoundScan(PENDING_SCAN if selection.channel is None else PENDING_IN_CHANNEL_SCAN)
        case ResponseState.ACKED:
            return BoundScan(scan_by_id(RESPONSES, in_state=True), {"state": state.value})
        case _:
            assert_never(state)
