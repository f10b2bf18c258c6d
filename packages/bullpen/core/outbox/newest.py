"""Responses in a list, the newest first; the lost ones by the index that has them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Table

from bullpen.core.models import RESPONSES, RESPONSES_ARCHIVE
from bullpen.core.outbox.browse import SeenResponse, look_up_response
from bullpen.core.outbox.roads import BY_NUMBER, BY_NUMBER_IN_STATE, ways_to_responses
from bullpen.core.queue.newest import above
from bullpen.core.queue.selection import Selection
from bullpen.core.queue.walk import Found, Walk, Way
from bullpen.core.states import ResponseState
from bullpen.core.store.transaction import Transaction

LOST = (ResponseState.DEAD, ResponseState.UNKNOWN)


def newest_responses(
    tx: Transaction,
    selection: Selection,
    states: Sequence[ResponseState],
    limit: int,
    *,
    archived: bool = False,
) -> list[SeenResponse]:
    """Those that are meant, of these states or any; with `archived` the archived ones as well."""
    found = _of(tx, RESPONSES, selection, states, limit)
    if archived:
        found += _of(tx, RESPONSES_ARCHIVE, selection, states, limit)
    found.sort(key=lambda each: each.id, reverse=True)
    return [look_up_response(tx, str(each.id)) for each in found[:limit]]


def _of(
    tx: Transaction,
    table: Table,
    selection: Selection,
    states: Sequence[ResponseState],
    limit: int,
) -> list[Found]:
    return [
        each
        for way in _ways(tx, table, selection, states)
        for each in Walk([way], selection, newest=True).next(tx, limit)
    ]


def _ways(
    tx: Transaction, table: Table, selection: Selection, states: Sequence[ResponseState]
) -> list[Way]:
    """One for each state: the newest of each are among the newest of all."""
    floor = above(tx, table, selection)
    if not states:
        return [Way(BY_NUMBER[table], floor)]
    lost = [state for state in states if table is RESPONSES and state in LOST]
    return [
        *ways_to_responses(lost, selection),
        *(
            Way(BY_NUMBER_IN_STATE[table], {**floor, "state": state.value})
            for state in states
            if state not in lost
        ),
    ]
