"""The indexes by which responses are found, each with its order."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, bindparam

from bullpen.core.models import RESPONSES, RESPONSES_ARCHIVE
from bullpen.core.models.base import const
from bullpen.core.queue.roads import Road, by_number, in_state
from bullpen.core.queue.selection import Selection
from bullpen.core.queue.walk import Way
from bullpen.core.states import ResponseState

R = RESPONSES.c

# Named twice, so that the partial index is recognised.


def _lost() -> ColumnElement[bool]:
    return R.status.in_([const(each.value) for each in (ResponseState.DEAD, ResponseState.UNKNOWN)])


def _pending() -> ColumnElement[bool]:
    return R.status == const(ResponseState.PENDING.value)


LOST = Road(RESPONSES, lambda: (_lost(), R.status == bindparam("state")), ("id",), "created_at")
PENDING_OF_ALL = Road(
    RESPONSES, lambda: (_pending(),), ("channel", "available_at", "id"), "created_at"
)
PENDING_OF_ONE = Road(RESPONSES, lambda: (_pending(),), ("available_at", "id"), "created_at")
BY_NUMBER = {table: by_number(table) for table in (RESPONSES, RESPONSES_ARCHIVE)}
BY_NUMBER_IN_STATE = {table: in_state(road) for table, road in BY_NUMBER.items()}


def ways_to_responses(states: Sequence[ResponseState], selection: Selection) -> list[Way]:
    """Where the live responses of these states are found, a state after the other."""
    return [_way(state, selection) for state in states]


def _way(state: ResponseState, selection: Selection) -> Way:
    match state:
        case ResponseState.DEAD | ResponseState.UNKNOWN:
            return Way(LOST, {"state": state.value})
        case ResponseState.PENDING:
            return Way(PENDING_OF_ALL if selection.channel is None else PENDING_OF_ONE)
        case ResponseState.ACKED:
            return Way(BY_NUMBER_IN_STATE[RESPONSES], {"state": state.value})
