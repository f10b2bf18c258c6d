"""Which rows are of a conversation. Its first message is found by its own id, all others by its."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum

from sqlalchemy import ColumnElement, Select, Table, bindparam, func, or_, select, union_all

from bullpen.core.models import MESSAGES, MESSAGES_ARCHIVE
from bullpen.core.queue.browse import MessageRecord
from bullpen.core.states import MessageState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

COLUMN_NAMES = tuple(each.name for each in fields(MessageRecord))

ACTIVE_STATES = (MessageState.PENDING, MessageState.PROCESSING)


class ConversationState(StrEnum):
    """How a conversation stands."""

    UNDER_WAY = "under_way"
    HELD = "held"
    """Nothing of it moves before a person lets it go on."""
    AT_REST = "at_rest"


@dataclass(frozen=True, slots=True)
class StateCounts:
    """How many messages of a conversation are in which state."""

    by_state: dict[str, int]

    @property
    def messages(self) -> int:
        """How many there are in all."""
        return sum(self.by_state.values())

    @property
    def stand(self) -> ConversationState:
        """What follows from them."""
        if any(self.by_state.get(state.value) for state in ACTIVE_STATES):
            return ConversationState.UNDER_WAY
        return (
            ConversationState.HELD
            if self.by_state.get(MessageState.HELD.value)
            else ConversationState.AT_REST
        )


def _in_conversation(table: Table) -> ColumnElement[bool]:
    c = table.c
    if table is MESSAGES_ARCHIVE:
        return c.conversation_id == bindparam("conversation")
    return or_(
        c.message_id == bindparam("conversation"),
        (c.conversation_id == bindparam("conversation")) & (c.conversation_id != c.message_id),
    )


def select_messages(
    table: Table, names: Iterable[str] = COLUMN_NAMES
) -> Select[tuple[object, ...]]:
    """The live or the archived messages of a conversation."""
    columns = (table.c[name] for name in names)
    return select(*columns).where(_in_conversation(table))


def select_column(name: str) -> Select[tuple[str]]:
    """One column of all its messages, live and archived."""
    both = union_all(*(select_messages(table, (name,)) for table in (MESSAGES, MESSAGES_ARCHIVE)))
    found = both.subquery()
    return select(found.c[name])


COUNT_BY_STATE: Statement[tuple[str, int]] = Statement(
    lambda: union_all(
        *(
            select(table.c.status, func.count())
            .where(_in_conversation(table))
            .group_by(table.c.status)
            for table in (MESSAGES, MESSAGES_ARCHIVE)
        )
    )
)

SELECT_AGENTS: Statement[tuple[str]] = Statement(lambda: select_column("agent").distinct())


def count_messages(tx: Transaction, conversation_id: str) -> StateCounts:
    """How its messages stand."""
    found: dict[str, int] = {}
    for state, number in tx.all(COUNT_BY_STATE, {"conversation": conversation_id}):
        found[state] = found.get(state, 0) + number
    return StateCounts(found)


def list_conversation_agents(tx: Transaction, conversation_id: str) -> Sequence[str]:
    """Whose messages they are."""
    check_text(conversation_id, tx.settings.message_bytes, "the conversation's id")
    return [agent for (agent,) in tx.all(SELECT_AGENTS, {"conversation": conversation_id})]
