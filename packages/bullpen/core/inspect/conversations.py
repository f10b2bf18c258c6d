"""Conversations: found by any id, listed, and the messages in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import ColumnElement, Select, Table, bindparam, func, or_, select, union_all

from bullpen.core.errors import UnknownMessage
from bullpen.core.inspect.messages import MessageRecord, get_message
from bullpen.core.models import ATTEMPTS, MESSAGES, MESSAGES_ARCHIVE
from bullpen.core.models.base import const
from bullpen.core.queue.attempts import list_attempts
from bullpen.core.states import MessageState
from bullpen.core.store.paging import MAX_ROW_ID, TablePager
from bullpen.core.store.statement import Statement, columns
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

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


def in_conversation(table: Table) -> ColumnElement[bool]:
    """Whether a live or an archived message belongs to a conversation."""
    c = table.c
    if table is MESSAGES_ARCHIVE:
        return c.conversation_id == bindparam("conversation")
    return or_(
        c.message_id == bindparam("conversation"),
        (c.conversation_id == bindparam("conversation")) & (c.conversation_id != c.message_id),
    )


def select_messages(table: Table) -> Select[*tuple[object, ...]]:
    """The live or the archived messages of a conversation."""
    return select(*columns(MessageRecord, table)).where(in_conversation(table))


def select_column(name: str) -> Select[tuple[str]]:
    """One column of all its messages, live and archived."""
    both = union_all(
        *(
            select(table.c[name]).where(in_conversation(table))
            for table in (MESSAGES, MESSAGES_ARCHIVE)
        )
    ).subquery()
    return select(both.c[name])


COUNT_BY_STATE: Statement[tuple[str, int]] = Statement(
    lambda: union_all(
        *(
            select(table.c.status, func.count())
            .where(in_conversation(table))
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


M = MESSAGES.c
A = ATTEMPTS.c

SUM_COST: Statement[tuple[float]] = Statement(
    lambda: select(func.coalesce(func.sum(A.cost), const(0))).where(
        A.conversation_id == bindparam("conversation")
    )
)


@dataclass(frozen=True, slots=True)
class ConversationSummary:
    """A conversation by its beginning."""

    first: MessageRecord
    stand: ConversationState
    messages: int
    cost: float


CONVERSATION_LISTING = TablePager(
    MESSAGES, MessageRecord, lambda: M.conversation_id == M.message_id
)


def list_conversations(
    tx: Transaction,
    wanted: Mapping[str, object],
    since: int | None,
    limit: int,
    *,
    upto: int = MAX_ROW_ID,
) -> list[ConversationSummary]:
    """The newest ones of the last day and those that are not through, the newest first.

    With a number those that began after it and up to another, the oldest first. `wanted` has what
    their first messages have in common, by the names of columns; None is anything.
    """
    rows = CONVERSATION_LISTING.page(tx, wanted, since, limit, upto)
    return [_summary(tx, each) for each in rows]


def _summary(tx: Transaction, first: MessageRecord) -> ConversationSummary:
    counts = count_messages(tx, first.conversation_id)
    return ConversationSummary(
        first, counts.stand, counts.messages, conversation_cost(tx, first.conversation_id)
    )


def conversation_cost(tx: Transaction, conversation_id: str) -> float:
    """What its runs have cost so far, in dollars."""
    row = tx.one(SUM_COST, {"conversation": conversation_id})
    return 0.0 if row is None else float(row[0])


def get_conversation_id(tx: Transaction, id_: str) -> str:
    """The conversation's id; the given one, if there is no message of that name."""
    try:
        return get_message(tx, id_).conversation_id
    except UnknownMessage:
        # Of a message that is kept no longer its runs may still be known.
        found = list_attempts(tx, {"message_id": id_}, 0, 1)
        return found[0].conversation_id if found else id_
