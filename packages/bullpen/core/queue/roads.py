"""The indexes by which messages are found, each with its order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Column, ColumnElement, Table, bindparam, or_

from bullpen.core.models import ARCHIVE, MESSAGES
from bullpen.core.models.base import const
from bullpen.core.queue.lane import ready
from bullpen.core.states import ARCHIVED, MessageState
from bullpen.core.store.among import Among

M = MESSAGES.c


def _pending() -> ColumnElement[bool]:
    return M.status == const(MessageState.PENDING.value)


@dataclass(frozen=True, eq=False)
class Road:
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


def _states(*states: MessageState) -> tuple[ColumnElement[bool], ...]:
    # Named twice, so that the partial index is recognised.
    named = M.status.in_([const(each.value) for each in states])
    return named, M.status == bindparam("state")


def _conversation(table: Table) -> Road:
    def whole() -> tuple[ColumnElement[bool], ...]:
        c = table.c
        members = c.conversation_id == bindparam("conversation")
        if table is MESSAGES:
            root = c.message_id == bindparam("conversation")
            members = or_(root, members & (c.conversation_id != c.message_id))
        return (members,)

    return Road(table, whole, ("id",), "created_at")


def by_number(table: Table) -> Road:
    """All of a table, by the number of each row."""
    return Road(table, lambda: (), ("id",), "created_at")


def in_state(road: Road) -> Road:
    """Of the same rows those in one state; no index knows it."""
    return Road(
        road.table,
        lambda: (*road.where(), road.table.c.status == bindparam("state")),
        road.names,
        road.moment,
    )


FOR_PEOPLE = Road(
    MESSAGES,
    lambda: _states(MessageState.DEAD, MessageState.HELD),
    ("updated_at", "id"),
    "updated_at",
)
FINISHED = Road(MESSAGES, lambda: _states(*ARCHIVED), ("updated_at", "id"), "updated_at")
READY_OF_ALL = Road(MESSAGES, lambda: (ready(),), ("agent", "sort_key", "id"), "created_at")
READY_OF_ONE = Road(MESSAGES, lambda: (ready(),), ("sort_key", "id"), "created_at")
DELAYED = Road(MESSAGES, lambda: (_pending(), ~M.ready), ("available_at", "id"), "created_at")
RUNNING = Road(
    MESSAGES,
    lambda: (Among(M.id, "rows"), M.status == const(MessageState.PROCESSING.value)),
    ("id",),
    "created_at",
)
BY_NUMBER = {table: by_number(table) for table in (MESSAGES, ARCHIVE)}
BY_NUMBER_IN_STATE = {table: in_state(road) for table, road in BY_NUMBER.items()}
TOGETHER = {table: _conversation(table) for table in (MESSAGES, ARCHIVE)}
TOGETHER_IN_STATE = {table: in_state(road) for table, road in TOGETHER.items()}
