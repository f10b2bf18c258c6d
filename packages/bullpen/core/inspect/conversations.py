"""Read conversations: find them by any id, list them, and count their messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Select, Table, select

from bullpen.core.errors import UnknownMessage
from bullpen.core.inspect.messages import MessageRecord, get_message
from bullpen.core.models import ATTEMPTS, MESSAGES
from bullpen.core.models.archive import MESSAGE_TABLES, in_conversation, live_and_archived
from bullpen.core.queue.attempts import list_attempts
from bullpen.core.queue.conversations import conversation_totals, count_by_state
from bullpen.core.states import ACTIVE_STATES, MessageState
from bullpen.core.store.paging import MAX_ROW_ID, TablePager
from bullpen.core.store.statement import Statement, columns
from bullpen.core.store.transaction import Transaction, map_page
from bullpen.core.text import check_text


class ConversationState(StrEnum):
    """The state of a conversation."""

    UNDER_WAY = "under_way"
    HELD = "held"
    """Nothing in it continues until a person resumes it."""
    AT_REST = "at_rest"


@dataclass(frozen=True, slots=True)
class StateCounts:
    """The number of messages of a conversation in each state."""

    by_state: dict[str, int]

    @property
    def messages(self) -> int:
        """The number of all messages."""
        return sum(self.by_state.values())

    @property
    def stand(self) -> ConversationState:
        """The state of the conversation."""
        if any(self.by_state.get(state.value) for state in ACTIVE_STATES):
            return ConversationState.UNDER_WAY
        return (
            ConversationState.HELD
            if self.by_state.get(MessageState.HELD.value)
            else ConversationState.AT_REST
        )


def select_messages(table: Table) -> Select[*tuple[object, ...]]:
    """The live or the archived messages of a conversation."""
    return select(*columns(MessageRecord, table)).where(in_conversation(table))


def select_column(name: str) -> Select[tuple[str]]:
    """One column of all messages of a conversation, live and archived."""
    both = live_and_archived(
        MESSAGE_TABLES, lambda table: select(table.c[name]).where(in_conversation(table))
    ).subquery()
    return select(both.c[name])


SELECT_AGENTS: Statement[tuple[str]] = Statement(lambda: select_column("agent").distinct())


def count_messages(tx: Transaction, conversation_id: str) -> StateCounts:
    """The messages of a conversation, counted by state."""
    return StateCounts(count_by_state(tx, conversation_id))


def list_conversation_agents(tx: Transaction, conversation_id: str) -> Sequence[str]:
    """The agents that have messages in a conversation."""
    check_text(conversation_id, tx.settings.message_bytes, "the conversation id")
    return [agent for (agent,) in tx.all(SELECT_AGENTS, {"conversation": conversation_id})]


M = MESSAGES.c
A = ATTEMPTS.c


@dataclass(frozen=True, slots=True)
class ConversationSummary:
    """A conversation: its first message, its state, and the totals of its runs."""

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
    """The conversations whose first message is live, newest first.

    With `since`, those that began after this id and up to `upto`, oldest first. `wanted` are
    values of their first messages by column; None matches all.
    """
    rows = CONVERSATION_LISTING.page(tx, wanted, since, limit, upto)
    return map_page(rows, lambda each: _summary(tx, each))


def _summary(tx: Transaction, first: MessageRecord) -> ConversationSummary:
    counts = count_messages(tx, first.conversation_id)
    return ConversationSummary(
        first, counts.stand, counts.messages, conversation_totals(tx, first.conversation_id).cost
    )


def get_conversation_id(tx: Transaction, id_: str) -> str:
    """The id of the conversation of a message; the given id if it is unknown."""
    try:
        return get_message(tx, id_).conversation_id
    except UnknownMessage:
        # The attempts of a deleted message may still be there.
        found = list_attempts(tx, {"message_id": id_}, 0, 1)
        return found[0].conversation_id if found else id_
