"""walk: all messages that are meant, a piece at a time, each state by an index of its own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from sqlalchemy import Column, bindparam, func, select, tuple_

from bullpen.core.models import LANES, MESSAGES
from bullpen.core.queue.roads import (
    BY_CONVERSATION_IN_STATE,
    DEAD_OR_HELD_SCAN,
    DELAYED_SCAN,
    FINISHED_SCAN,
    PROCESSING_SCAN,
    READY_IN_LANE_SCAN,
    READY_SCAN,
    IndexScan,
)
from bullpen.core.queue.selection import Selection, conditions
from bullpen.core.states import MessageState
from bullpen.core.store.among import encode_ids
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

L = LANES.c

SELECT_CLAIMED_BATCHES: Statement[tuple[str]] = Statement(
    lambda: select(L.batch).where(L.lease_expires_at.is_not(None), L.batch.is_not(None))
)


@dataclass(frozen=True, slots=True)
class RowRef:
    """A message that is meant."""

    id: int
    message_id: str
    agent: str


@dataclass(frozen=True, slots=True)
class BoundScan:
    """A road, with what has to be known on it."""

    road: IndexScan
    values: dict[str, object] = field(default_factory=dict)


class BatchCursor:
    """The messages that are meant and stand on these ways, a piece at a time, by the roads' order.

    Each piece is asked for by itself, in any transaction; nothing is held meanwhile.
    """

    def __init__(
        self, ways: Sequence[BoundScan], selection: Selection, *, newest: bool = False
    ) -> None:
        self._ways = list(ways)
        self._selection = selection
        self._newest = newest
        self._last: dict[str, object] = {}

    def count(self, tx: Transaction) -> int:
        """How many are left of them now."""
        total = 0
        for way in self._ways:
            values = {**self._selection.values(tx), **way.values}
            row = tx.one(select_count(way.road, frozenset(values)), values)
            total += 0 if row is None else row[0]
        return total

    def next(self, tx: Transaction, limit: int) -> list[RowRef]:
        """The next ones; none if there are no more."""
        while self._ways:
            way = self._ways[0]
            values = {**self._selection.values(tx), **way.values}
            statement = select_batch(way.road, frozenset(values), bool(self._last), self._newest)
            rows = tx.all(statement, {**values, **self._last, "limit": limit})
            if rows:
                self._last = _last_keys(way.road.keys, rows[-1][3:])
                return [_row_ref(row) for row in rows]
            self._ways.pop(0)
            self._last = {}
        return []


@cache
def select_batch(
    road: IndexScan, names: frozenset[str], further: bool, newest: bool
) -> Statement[tuple[object, ...]]:
    """The next messages of a road, in its order or from its end."""
    c, keys = road.table.c, road.keys
    which = [*road.where(), *conditions(road.table, names, road.when)]
    if further:
        here = tuple_(*keys)
        last = tuple_(*(bindparam(f"last_{key.name}", type_=key.type) for key in keys))
        which.append(here < last if newest else here > last)
    return Statement(
        lambda: (
            select(c.id, c.message_id, c.agent, *(key.label(f"key_{key.name}") for key in keys))
            .where(*which)
            .order_by(*(key.desc() if newest else key.asc() for key in keys))
            .limit(bindparam("limit"))
        )
    )


@cache
def select_count(road: IndexScan, names: frozenset[str]) -> Statement[tuple[int]]:
    """How many messages of a road are meant."""
    which = conditions(road.table, names, road.when)
    return Statement(
        lambda: select(func.count()).select_from(road.table).where(*road.where(), *which)
    )


def message_scans(
    tx: Transaction, states: Sequence[MessageState], selection: Selection
) -> list[BoundScan]:
    """Where the live messages of these states are found, a state after the other."""
    if selection.conversation is not None:
        road = BY_CONVERSATION_IN_STATE[MESSAGES]
        return [BoundScan(road, {"state": state.value}) for state in states]
    return [way for state in states for way in _scans_of_state(tx, state, selection)]


def _scans_of_state(tx: Transaction, state: MessageState, selection: Selection) -> list[BoundScan]:
    match state:
        case MessageState.PENDING:
            ready = READY_SCAN if selection.agent is None else READY_IN_LANE_SCAN
            return [BoundScan(ready), BoundScan(DELAYED_SCAN)]
        case MessageState.PROCESSING:
            rows = [
                row for (batch,) in tx.all(SELECT_CLAIMED_BATCHES, {}) for row in json.loads(batch)
            ]
            return [BoundScan(PROCESSING_SCAN, {"rows": encode_ids(rows)})]
        case MessageState.DEAD | MessageState.HELD:
            return [BoundScan(DEAD_OR_HELD_SCAN, {"state": state.value})]
        case MessageState.COMPLETED | MessageState.CANCELLED | MessageState.EXPIRED:
            return [BoundScan(FINISHED_SCAN, {"state": state.value})]


def _last_keys(keys: Sequence[Column[int]], values: Sequence[object]) -> dict[str, object]:
    return {f"last_{key.name}": value for key, value in zip(keys, values, strict=True)}


def _row_ref(row: tuple[object, ...]) -> RowRef:
    return RowRef(*row[:3])  # type: ignore[arg-type]
