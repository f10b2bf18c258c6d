"""/api/conversations and /api/attempts: traces, and every run that has ended."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import BaseModel, Field

from bullpen.api.context import caller, read, require_reach, write
from bullpen.api.route import APPROVE, READ, Routes
from bullpen.api.routes.messages import MessageAnswer, Reason
from bullpen.api.routes.responses import ResponseAnswer
from bullpen.api.schemas import Answer, Count, Page, Rows, page_end
from bullpen.core.errors import LaneError, NotFound
from bullpen.core.inspect.conversations import (
    ConversationState,
    ConversationSummary,
    list_conversation_agents,
    list_conversations,
)
from bullpen.core.inspect.trace import Trace, trace
from bullpen.core.message import ErrorKind
from bullpen.core.models import ATTEMPTS, MESSAGES
from bullpen.core.queue.attempts import AttemptOutcome, list_attempts
from bullpen.core.queue.conversations import cancel_conversation, resume_conversation
from bullpen.core.states import MessageState
from bullpen.core.store.transaction import Transaction, map_page

attempt_routes = Routes("attempts", "Runs that have ended.")

Text = Annotated[str, Field(max_length=200)]


class AttemptAnswer(Answer):
    """One run that has ended."""

    id: int
    message_id: str = Field(description="the first of the messages that it was to answer")
    messages: int = Field(description="how many they were")
    agent: str
    worker: str
    outcome: AttemptOutcome
    error_kind: ErrorKind | None
    error: str | None
    fingerprint: str | None = Field(
        description="the same for errors that differ in numbers and ids only"
    )
    retry_count: int
    provider: str | None
    model: str | None
    input_tokens: int
    output_tokens: int
    cost: float = Field(description="dollars")
    conversation_id: str
    hop: int
    team_id: str | None
    channel: str
    enqueued_at: int
    claimed_at: int
    started_at: int
    finished_at: int


class AttemptList(Rows[AttemptAnswer]):
    """Runs that have ended."""


class AttemptQuery(Page):
    """Which runs."""

    agent: Text | None = None
    outcome: AttemptOutcome | None = None
    error_kind: ErrorKind | None = None
    message_id: Text | None = None
    conversation_id: Text | None = None


@attempt_routes.get("/api/attempts", READ)
def attempts(query: AttemptQuery) -> AttemptList:
    """List the runs, the latest first; with `since_id` those after it, the oldest first.

    A key for some agents must name one of them.
    """
    require_reach(query.agent)
    filters = query.model_dump(exclude={"limit", "since_id"})
    last = page_end(ATTEMPTS, query)
    with read() as tx:
        rows = list_attempts(tx, filters, query.since_id, query.limit, upto=last)
    return AttemptList.page(rows, query)


routes = Routes("conversations", "All that one message of a person's set off.")


class ConversationAnswer(Answer):
    """A conversation in a list, by the message that it began with."""

    id: int
    conversation_id: str
    agent: str
    channel: str
    sender: str
    sender_id: str | None
    message: str
    status: MessageState = Field(description="of the first message")
    state: ConversationState = Field(description="of all of it")
    messages: int
    cost: float = Field(description="dollars")
    created_at: int


class ConversationList(Rows[ConversationAnswer]):
    """Conversations."""


class ConversationQuery(Page):
    """Which conversations."""

    agent: Text | None = Field(None, description="to whom the first message went")
    channel: Text | None = None
    sender_id: Text | None = None


class ConversationPath(BaseModel):
    """Which conversation."""

    conversation_id: str = Field(max_length=200, description="the id of its first message")


class TraceMessageAnswer(MessageAnswer):
    """A message, and when what was done with it last."""

    archived: bool
    claimed_at: int | None
    started_at: int | None
    finished_at: int | None
    answered_with: str | None = Field(
        description="the message by whose run it was answered as well; its conversation has that"
    )


class HandoffAnswer(Answer):
    """A message that one agent wrote to another."""

    message_id: str
    parent_id: str | None = Field(description="the message of whose run it came")
    from_agent: str
    agent: str
    team_id: str | None
    hop: int
    status: MessageState
    created_at: int


class TotalsAnswer(Answer):
    """What it took, all of it."""

    messages: int
    attempts: int
    cost: float = Field(description="dollars")
    input_tokens: int
    output_tokens: int


class TraceAnswer(Answer):
    """A conversation with its whole life; of a very long one, the first thousand of each kind.

    Of very long texts less: `/api/messages` and `/api/responses` list the rest by conversation.
    """

    large: ClassVar[bool] = True

    conversation_id: str
    state: ConversationState
    totals: TotalsAnswer
    messages: list[TraceMessageAnswer]
    handoffs: list[HandoffAnswer]
    attempts: list[AttemptAnswer]
    responses: list[ResponseAnswer]


@routes.get("/api/conversations", READ)
def newest(query: ConversationQuery) -> ConversationList:
    """List the conversations of the last day, and older ones whose first message is not through.

    The newest first; with `since_id` those that began after it, the oldest first. A key for some
    agents must name one of them.
    """
    require_reach(query.agent)
    filters = query.model_dump(exclude={"limit", "since_id"})
    last = page_end(MESSAGES, query)
    with read() as tx:
        rows = list_conversations(tx, filters, query.since_id, query.limit, upto=last)
    return ConversationList.page(map_page(rows, _conversation_answer), query)


@routes.get("/api/conversations/<conversation_id>", READ, NotFound)
def conversation(path: ConversationPath) -> TraceAnswer:
    """Show all of a conversation: its messages, runs, answers and handoffs, archived ones included.

    The key must reach every agent that has a part in it.
    """
    with read() as tx:
        conversation = trace(tx, path.conversation_id)
        agents = conversation.agents.union(list_conversation_agents(tx, path.conversation_id))
    for agent in sorted(agents):
        require_reach(agent)
    return _trace_answer(conversation)


@routes.post("/api/conversations/<conversation_id>/cancel", APPROVE, NotFound)
def cancel(path: ConversationPath, body: Reason) -> Count:
    """End everything of a conversation that is not over; what runs is stopped."""
    with write() as tx:
        _check_reach(tx, path)
        reason = body.reason or "cancelled"
        return Count(count=cancel_conversation(tx, path.conversation_id, reason))


@routes.post("/api/conversations/<conversation_id>/let-go", APPROVE, NotFound, LaneError)
def let_go(path: ConversationPath) -> Count:
    """Let everything go on that is held of a conversation."""
    with write() as tx:
        _check_reach(tx, path)
        return Count(count=resume_conversation(tx, path.conversation_id))


def _conversation_answer(summary: ConversationSummary) -> ConversationAnswer:
    return ConversationAnswer.from_row(
        summary.first, state=summary.stand, messages=summary.messages, cost=summary.cost
    )


def _trace_answer(trace: Trace) -> TraceAnswer:
    messages = [
        TraceMessageAnswer.from_row(
            step.message,
            archived=step.archived,
            claimed_at=step.claimed_at,
            started_at=step.started_at,
            finished_at=step.finished_at,
            answered_with=step.answered_with,
        )
        for step in trace.steps
    ]
    return TraceAnswer.from_row(trace, state=trace.stand, messages=messages)


def _check_reach(tx: Transaction, path: ConversationPath) -> None:
    """Check that the conversation exists and that the key reaches all of its agents."""
    agents = list_conversation_agents(tx, path.conversation_id)
    if not agents:
        raise NotFound(
            f"there is no conversation {path.conversation_id[:60]!r}",
            hint="Its id is that of its first message.",
        )
    if caller().agents is not None:
        for agent in sorted(agents):
            require_reach(agent)
