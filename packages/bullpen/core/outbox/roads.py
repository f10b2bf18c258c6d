"""The indexes by which responses are found, each with its order."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, bindparam

from bullpen.core.models import RESPONSES, RESPONSES_ARCHIVE
from bullpen.core.models.base import const
from bullpen.core.queue.roads import IndexScan, by_number, scan_in_state
from bullpen.core.queue.selection import Selection
from bullpen.core.queue.walk import BoundScan
from bullpen.core.states import ResponseState

R = RESPONSES.c

# Named twice, so that the partial index is recognised.


def _lost() -> ColumnElement[bool]:
    return R.status.in_([const(each.value) for each in (ResponseState.DEAD, ResponseState.UNKNOWN)])


def _pending() -> ColumnElement[bool]:
    return R.status == const(ResponseState.PENDING.value)


UNDELIVERED_SCAN = IndexScan(
    RESPONSES, lambda: (_lost(), R.status == bindparam("state")), ("id",), "created_at"
)
PENDING_SCAN = IndexScan(
    RESPONSES, lambda: (_pending(),), ("channel", "available_at", "id"), "created_at"
)
PENDING_IN_CHANNEL_SCAN = IndexScan(
    RESPONSES, lambda: (_pending(),), ("available_at", "id"), "created_at"
)
BY_ID = {table: by_number(table) for table in (RESPONSES, RESPONSES_ARCHIVE)}
BY_ID_IN_STATE = {table: scan_in_state(road) for table, road in BY_ID.items()}


def response_scans(states: Sequence[ResponseState], selection: Selection) -> list[BoundScan]:
    """Where the live responses of these states are found, a state after the other."""
    return [_scan_of_state(state, selection) for state in states]


def _scan_of_state(state: ResponseState, selection: Selection) -> BoundScan:
    match state:
        case ResponseState.DEAD | ResponseState.UNKNOWN:
            return BoundScan(UNDELIVERED_SCAN, {"state": state.value})
        case ResponseState.PENDING:
            return BoundScan(PENDING_SCAN if selection.channel is None else PENDING_IN_CHANNEL_SCAN)
        case ResponseState.ACKED:
            return BoundScan(BY_ID_IN_STATE[RESPONSES], {"state": state.value})
