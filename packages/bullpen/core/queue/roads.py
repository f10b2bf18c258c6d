"""The indexes by which messages are found, each with its order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Column, ColumnElement, Table, bindparam, or_

from bullpen.core.models import MESSAGES, MESSAGES_ARCHIVE
from bullpen.core.models.base import const
from bullpen.core.queue.lane import ready
from bullpen.core.states import ARCHIVED_STATES, MessageState
from bullpen.core.store.among import JsonIn

M = MESSAGES.c


def _pending() -> ColumnElement[bool]:
    return M.status == const(MessageState.PENDING.value)


@dataclass(frozen=True, eq=False)
class IndexScan:
    """An index, by the rows that stand in it and its order."""

    table: Table
    where: Callable[[], tuple[ColumnElement[bool], ...]]
    names: tuple[str, ...]
    """Of the columns that the index is sorted by."""
    moment: str
    """The column that `since` and `before` are about."""

    @property
    def keys(self) -> tuple[Column[int], ...]:
        """What the index is sorted by."""
        return tuple(self.table.c[name] for name in self.names)

    @property
    def when(self) -> Column[int]:
        """What `since` and `before` are about."""
        return self.table.c[self.moment]


def _in_states(*states: MessageState) -> tuple[ColumnElement[bool], ...]:
    # Named twice, so that the partial index is recognised.
    named = M.status.in_([const(each.value) for each in states])
    return named, M.status == bindparam("state")


def _conversation_scan(table: Table) -> IndexScan:
    def whole() -> tuple[ColumnElement[bool], ...]:
        c = table.c
        members = c.conversation_id == bindparam("conversation")
        if table is MESSAGES:
            root = c.message_id == bindparam("conversation")
            members = or_(root, members & (c.conversation_id != c.message_id))
        return (members,)

    return IndexScan(table, whole, ("id",), "created_at")


def by_number(table: Table) -> IndexScan:
    """All of a table, by the number of each row."""
    return IndexScan(table, lambda: (), ("id",), "created_at")


def scan_in_state(road: IndexScan) -> IndexScan:
    """Of the same rows those in one state; no index knows it."""
    return IndexScan(
        road.table,
        lambda: (*road.where(), road.table.c.status == bindparam("state")),
        road.names,
        road.moment,
    )


DEAD_OR_HELD_SCAN = IndexScan(
    MESSAGES,
    lambda: _in_states(MessageState.DEAD, MessageState.HELD),
    ("updated_at", "id"),
    "updated_at",
)
FINISHED_SCAN = IndexScan(
    MESSAGES, lambda: _in_states(*ARCHIVED_STATES), ("updated_at", "id"), "updated_at"
)
READY_SCAN = IndexScan(MESSAGES, lambda: (ready(),), ("agent", "sort_key", "id"), "created_at")
READY_IN_LANE_SCAN = IndexScan(MESSAGES, lambda: (ready(),), ("sort_key", "id"), "created_at")
DELAYED_SCAN = IndexScan(
    MESSAGES, lambda: (_pending(), ~M.ready), ("available_at", "id"), "created_at"
)
PROCESSING_SCAN = IndexScan(
    MESSAGES,
    lambda: (JsonIn(M.id, "rows"), M.status == const(MessageState.PROCESSING.value)),
    ("id",),
    "created_at",
)
BY_ID = {table: by_number(table) for table in (MESSAGES, MESSAGES_ARCHIVE)}
BY_ID_IN_STATE = {table: scan_in_state(road) for table, road in BY_ID.items()}
BY_CONVERSATION = {table: _conversation_scan(table) for table in (MESSAGES, MESSAGES_ARCHIVE)}
BY_CONVERSATION_IN_STATE = {table: scan_in_state(road) for table, road in BY_CONVERSATION.items()}
