"""Responses in a list, the newest first; the lost ones by the index that has them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Table

from bullpen.core.models import RESPONSES, RESPONSES_ARCHIVE
from bullpen.core.outbox.browse import ResponseRecord, get_response
from bullpen.core.outbox.roads import BY_ID, BY_ID_IN_STATE, response_scans
from bullpen.core.queue.newest import id_floor
from bullpen.core.queue.selection import Selection
from bullpen.core.queue.walk import BatchCursor, BoundScan, RowRef
from bullpen.core.states import ResponseState
from bullpen.core.store.transaction import Transaction

UNDELIVERED_STATES = (ResponseState.DEAD, ResponseState.UNKNOWN)


def newest_responses(
    tx: Transaction,
    selection: Selection,
    states: Sequence[ResponseState],
    limit: int,
    *,
    archived: bool = False,
) -> list[ResponseRecord]:
    """Those that are meant, of these states or any; with `archived` the archived ones as well."""
    found = _newest_in_table(tx, RESPONSES, selection, states, limit)
    if archived:
        found += _newest_in_table(tx, RESPONSES_ARCHIVE, selection, states, limit)
    found.sort(key=lambda each: each.id, reverse=True)
    return [get_response(tx, str(each.id)) for each in found[:limit]]


def _newest_in_table(
    tx: Transaction,
    table: Table,
    selection: Selection,
    states: Sequence[ResponseState],
    limit: int,
) -> list[RowRef]:
    return [
        each
        for way in _newest_scans(tx, table, selection, states)
        for each in BatchCursor([way], selection, newest=True).next(tx, limit)
    ]


def _newest_scans(
    tx: Transaction, table: Table, selection: Selection, states: Sequence[ResponseState]
) -> list[BoundScan]:
    """One for each state: the newest of each are among the newest of all."""
    floor = id_floor(tx, table, selection)
    if not states:
        return [BoundScan(BY_ID[table], floor)]
    lost = [state for state in states if table is RESPONSES and state in UNDELIVERED_STATES]
    return [
        *response_scans(lost, selection),
        *(
            BoundScan(BY_ID_IN_STATE[table], {**floor, "state": state.value})
            for state in states
            if state not in lost
        ),
    ]
