"""A conversation as a tree of messages, attempts and responses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy import bindparam, select

from bullpen.core.errors import NotFound
from bullpen.core.inspect.conversations import ConversationState, count_messages, select_messages
from bullpen.core.inspect.messages import MessageRecord
from bullpen.core.inspect.responses import ResponseRecord, list_responses_to
from bullpen.core.models import ATTEMPTS, LANES, MESSAGES, MESSAGES_ARCHIVE
from bullpen.core.models.base import const
from bullpen.core.queue.attempts import Attempt, list_attempts
from bullpen.core.queue.conversations import conversation_totals
from bullpen.core.states import ARCHIVED_STATES, MessageState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text, describe_unknown

M = MESSAGES.c
A = ATTEMPTS.c
L = LANES.c

MAX_ROWS = 1000
"""The most messages, runs and responses of one conversation that are read."""

SELECT_LIVE: Statement[MessageRecord] = Statement(
    lambda: select_messages(MESSAGES).order_by(M.id).limit(const(MAX_ROWS)), MessageRecord
)
SELECT_ARCHIVED: Statement[MessageRecord] = Statement(
    lambda: (
        select_messages(MESSAGES_ARCHIVE).order_by(MESSAGES_ARCHIVE.c.id).limit(const(MAX_ROWS))
    ),
    MessageRecord,
)

SELECT_CLAIMED_AT: Statement[tuple[int]] = Statement(
    lambda: select(L.claimed_at).where(
        L.agent == bindparam("agent"), L.lease_expires_at.is_not(None)
    )
)

# All messages of one run are completed at the same moment; the attempt names the first one.
SELECT_RUN_PRIMARY: Statement[tuple[str]] = Statement(
    lambda: (
        select(M.message_id)
        .join(ATTEMPTS, A.message_id == M.message_id)
        .where(
            M.status.in_([const(state.value) for state in ARCHIVED_STATES]),
            M.updated_at == bindparam("at"),
            M.agent == bindparam("agent"),
            M.claimed_by == bindparam("worker"),
            A.finished_at == bindparam("at"),
        )
        .order_by(M.id)
        .limit(const(1))
    )
)


@dataclass(frozen=True, slots=True)
class Step:
    """A message of the conversation, and when it was last claimed, started and finished."""

    message: MessageRecord
    archived: bool
    claimed_at: int | None
    started_at: int | None
    finished_at: int | None
    answered_with: str | None
    """The primary message of the run that answered this one too."""


@dataclass(frozen=True, slots=True)
class Totals:
    """The number of messages, and the totals of their runs."""

    messages: int
    attempts: int
    cost: float
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Trace:
    """A whole conversation."""

    conversation_id: str
    stand: ConversationState
    totals: Totals
    steps: tuple[Step, ...]
    attempts: tuple[Attempt, ...]
    responses: tuple[ResponseRecord, ...]

    @property
    def handoffs(self) -> tuple[MessageRecord, ...]:
        """The messages between agents."""
        return tuple(step.message for step in self.steps if step.message.from_agent is not None)

    @property
    def agents(self) -> frozenset[str]:
        """All agents in it."""
        return frozenset(
            (
                *(step.message.agent for step in self.steps),
                *(each.agent for each in self.attempts),
                *(each.agent for each in self.responses),
            )
        )


def trace(tx: Transaction, conversation_id: str) -> Trace:
    """The conversation of this id, archived rows included."""
    check_text(conversation_id, tx.settings.message_bytes, "the conversation id")
    asked: dict[str, object] = {"conversation": conversation_id}
    found = [(each, False) for each in tx.page(SELECT_LIVE, asked)]
    found += [(each, True) for each in tx.page(SELECT_ARCHIVED, asked)]
    found.sort(key=lambda each: each[0].id)
    attempts = list_attempts(tx, {"conversation_id": conversation_id}, 0, MAX_ROWS)
    named = {conversation_id, *(message.message_id for message, _ in found[:MAX_ROWS])}
    responses = list_responses_to(tx, sorted(named))[:MAX_ROWS]
    if not found and not attempts and not responses:
        raise NotFound(
            describe_unknown("conversation", conversation_id),
            hint="A conversation has the id of its first message.",
        )
    last = {each.message_id: each for each in attempts}
    counts = count_messages(tx, conversation_id)
    runs = conversation_totals(tx, conversation_id)
    return Trace(
        conversation_id=conversation_id,
        stand=counts.stand,
        totals=Totals(counts.messages, runs.runs, runs.cost, runs.input_tokens, runs.output_tokens),
        steps=tuple(
            _step(tx, message, archived, last.get(message.message_id))
            for message, archived in found[:MAX_ROWS]
        ),
        attempts=tuple(attempts),
        responses=tuple(responses),
    )


def _step(tx: Transaction, message: MessageRecord, archived: bool, last: Attempt | None) -> Step:
    if message.status == MessageState.PROCESSING:
        row = tx.one(SELECT_CLAIMED_AT, {"agent": message.agent})
        return Step(message, archived, None if row is None else row[0], None, None, None)
    if last is not None:
        times = (last.claimed_at, last.started_at, last.finished_at)
        return Step(message, archived, *times, None)
    beside = None
    if message.status == MessageState.COMPLETED and not archived:
        beside = tx.one(
            SELECT_RUN_PRIMARY,
            {"at": message.updated_at, "agent": message.agent, "worker": message.claimed_by},
        )
    return Step(message, archived, None, None, None, None if beside is None else beside[0])


Row = TypeVar("Row", Attempt, ResponseRecord)


@dataclass(frozen=True, slots=True)
class Node:
    """A message with its runs, its responses and the messages that it caused."""

    step: Step
    attempts: tuple[Attempt, ...]
    responses: tuple[ResponseRecord, ...]
    children: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Tree:
    """A conversation as a tree."""

    nodes: tuple[Node, ...]
    attempts: tuple[Attempt, ...]
    """Runs of messages that were deleted."""
    responses: tuple[ResponseRecord, ...]
    """Responses that answer none of the messages."""


def build_tree(trace: Trace) -> Tree:
    """The tree of a trace, which contains everything in the trace."""
    attempts = _by_message(trace.attempts)
    responses = _by_message(trace.responses)
    children: dict[str | None, list[Node]] = defaultdict(list)
    earlier = {step.message.message_id: step.message.id for step in trace.steps}
    # Starts with the last message: a message has a lower id than those that it caused.
    for step in reversed(trace.steps):
        message = step.message
        node = Node(
            step=step,
            attempts=tuple(attempts.get(message.message_id, ())),
            responses=tuple(responses.get(message.message_id, ())),
            children=tuple(reversed(children.pop(message.message_id, ()))),
        )
        above = earlier.get(message.parent_id or "")
        known = above is not None and above < message.id
        # A message without a stored parent is a root.
        children[message.parent_id if known else None].append(node)
    return Tree(
        nodes=tuple(reversed(children[None])),
        attempts=tuple(each for each in trace.attempts if each.message_id not in earlier),
        responses=tuple(each for each in trace.responses if each.message_id not in earlier),
    )


def _by_message(rows: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for each in rows:
        found[each.message_id].append(each)
    return found
