"""/api/conversations and /api/attempts: traces, and the records of finished runs."""

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

attempt_routes = Routes("attempts", "Records of finished runs.")

Text = Annotated[str, Field(max_length=200)]


class AttemptAnswer(Answer):
    """The record of a finished run."""

    id: int
    message_id: str = Field(description="The first message of the run.")
    messages: int = Field(description="Number of messages of the run.")
    agent: str
    worker: str
    outcome: AttemptOutcome
    error_kind: ErrorKind | None
    error: str | None
    fingerprint: str | None = Field(
        description="Equal for errors that differ only in numbers and ids."
    )
    retry_count: int
    provider: str | None
    model: str | None
    input_tokens: int
    output_tokens: int
    cost: float = Field(description="In dollars.")
    conversation_id: str
    hop: int
    team_id: str | None
    channel: str
    enqueued_at: int
    claimed_at: int
    started_at: int
    finished_at: int
    sender: str
    from_agent: str | None = Field(description="The agent that sent the message.")
    attempt: int | None = Field(
        description="Its number among the runs of the message, from 1; null in old records."
    )
    wait: int | None = Field(
        description="Back-off of the message after the run, in milliseconds; null if none."
    )


class AttemptList(Rows[AttemptAnswer]):
    """Finished runs."""


class AttemptQuery(Page):
    """Filters of runs."""

    agent: Text | None = None
    outcome: AttemptOutcome | None = None
    error_kind: ErrorKind | None = None
    message_id: Text | None = None
    conversation_id: Text | None = None


@attempt_routes.get("/api/attempts", READ)
def attempts(query: AttemptQuery) -> AttemptList:
    """List finished runs.

    Newest first; with `since_id`, the later ones, oldest first. A key for some agents must give
    one of them as `agent`.
    """
    require_reach(query.agent)
    filters = query.model_dump(exclude={"limit", "since_id"})
    last = page_end(ATTEMPTS, query)
    with read() as tx:
        rows = list_attempts(tx, filters, query.since_id, query.limit, upto=last)
    return AttemptList.page(rows, query)


routes = Routes("conversations", "A person's message and everything that it caused.")


class ConversationAnswer(Answer):
    """A conversation, with its first message."""

    id: int
    conversation_id: str
    agent: str
    channel: str
    sender: str
    sender_id: str | None
    message: str
    status: MessageState = Field(description="State of the first message.")
    state: ConversationState = Field(description="State of the whole conversation.")
    messages: int
    cost: float = Field(description="In dollars.")
    created_at: int


class ConversationList(Rows[ConversationAnswer]):
    """Conversations."""


class ConversationQuery(Page):
    """Filters of conversations."""

    agent: Text | None = Field(None, description="The agent of the first message.")
    channel: Text | None = None
    sender_id: Text | None = None


class ConversationPath(BaseModel):
    """Selects a conversation."""

    conversation_id: str = Field(max_length=200, description="The id of its first message.")


class TraceMessageAnswer(MessageAnswer):
    """A message, and the times of its last run."""

    archived: bool
    claimed_at: int | None
    started_at: int | None
    finished_at: int | None
    answered_with: str | None = Field(
        description="The message whose run also answered this one; that run is in the other "
        "message's conversation."
    )


class HandoffAnswer(Answer):
    """A message from one agent to another."""

    message_id: str
    parent_id: str | None = Field(description="The message whose run sent it.")
    from_agent: str
    agent: str
    team_id: str | None
    hop: int
    status: MessageState
    created_at: int


class TotalsAnswer(Answer):
    """The totals of a conversation."""

    messages: int
    attempts: int
    cost: float = Field(description="In dollars.")
    input_tokens: int
    output_tokens: int


class TraceAnswer(Answer):
    """The trace of a conversation, with at most the first thousand rows of each kind.

    Very long texts shorten it further; `/api/messages` and `/api/responses` list all rows of a
    conversation.
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
    """List recent conversations.

    These are the conversations of the last day, and older ones whose first message is not finished.
    Newest first; with `since_id`, the later ones, oldest first. A key for some agents must give one
    of them as `agent`.
    """
    require_reach(query.agent)
    filters = query.model_dump(exclude={"limit", "since_id"})
    last = page_end(MESSAGES, query)
    with read() as tx:
        rows = list_conversations(tx, filters, query.since_id, query.limit, upto=last)
    return ConversationList.page(map_page(rows, _conversation_answer), query)


@routes.get("/api/conversations/<conversation_id>", READ, NotFound)
def conversation(path: ConversationPath) -> TraceAnswer:
    """Get the trace of a conversation.

    It has the messages, runs, responses and handoffs, also the archived ones. The key must reach
    every agent of the conversation.
    """
    with read() as tx:
        conversation = trace(tx, path.conversation_id)
        agents = conversation.agents.union(list_conversation_agents(tx, path.conversation_id))
    for agent in sorted(agents):
        require_reach(agent)
    return _trace_answer(conversation)


@routes.post("/api/conversations/<conversation_id>/cancel", APPROVE, NotFound)
def cancel(path: ConversationPath, body: Reason) -> Count:
    """Cancel all open messages of a conversation and stop its runs."""
    with write() as tx:
        _check_reach(tx, path)
        reason = body.reason or "cancelled"
        return Count(count=cancel_conversation(tx, path.conversation_id, reason))


@routes.post("/api/conversations/<conversation_id>/let-go", APPROVE, NotFound, LaneError)
def let_go(path: ConversationPath) -> Count:
    """Resume all held messages of a conversation."""
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
            f"conversation {path.conversation_id[:60]!r} does not exist",
            hint="A conversation has the id of its first message.",
        )
    if caller().agents is not None:
        for agent in sorted(agents):
            require_reach(agent)
