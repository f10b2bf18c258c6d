"""The indexes by which messages are found, each with its order."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Column, ColumnElement, Table, bindparam, or_

from bullpen.core.models import ARCHIVE, MESSAGES
from bullpen.core.models.base import const
from bullpen.core.queue.lane import READY
from bullpen.core.states import ARCHIVED, MessageState
from bullpen.core.store.among import Among

M = MESSAGES.c

_PENDING = M.status == const(MessageState.PENDING.value)


@dataclass(frozen=True, eq=False)
class Road:
    """An index, by the rows that stand in it and its order."""

    table: Table
    where: tuple[ColumnElement[bool], ...]
    keys: tuple[Column[int], ...]
    when: Column[int]
    """The moment that `since` and `before` are about."""


def _states(*states: MessageState) -> tuple[ColumnElement[bool], ...]:
    # Named twice, so that the partial index is recognised.
    named = M.status.in_([const(each.value) for each in states])
    return named, M.status == bindparam("state")


def _conversation(table: Table) -> Road:
    c = table.c
    whole = c.conversation_id == bindparam("conversation")
    if table is MESSAGES:
        root = c.message_id == bindparam("conversation")
        whole = or_(root, whole & (c.conversation_id != c.message_id))
    return Road(table, (whole,), (c.id,), c.created_at)


def in_state(road: Road) -> Road:
    """Of the same rows those in one state; no index knows it."""
    state = road.table.c.status == bindparam("state")
    return Road(road.table, (*road.where, state), road.keys, road.when)


FOR_PEOPLE = Road(
    MESSAGES, _states(MessageState.DEAD, MessageState.HELD), (M.updated_at, M.id), M.updated_at
)
FINISHED = Road(MESSAGES, _states(*ARCHIVED), (M.updated_at, M.id), M.updated_at)
READY_OF_ALL = Road(MESSAGES, (READY,), (M.agent, M.sort_key, M.id), M.created_at)
READY_OF_ONE = Road(MESSAGES, (READY,), (M.sort_key, M.id), M.created_at)
DELAYED = Road(MESSAGES, (_PENDING, ~M.ready), (M.available_at, M.id), M.created_at)
RUNNING = Road(
    MESSAGES,
    (Among(M.id, "rows"), M.status == const(MessageState.PROCESSING.value)),
    (M.id,),
    M.created_at,
)

BY_NUMBER = {
    table: Road(table, (), (table.c.id,), table.c.created_at) for table in (MESSAGES, ARCHIVE)
}
BY_NUMBER_IN_STATE = {table: in_state(road) for table, road in BY_NUMBER.items()}
TOGETHER = {table: _conversation(table) for table in (MESSAGES, ARCHIVE)}
TOGETHER_IN_STATE = {table: in_state(road) for table, road in TOGETHER.items()}
