"""The queue: counts, running messages, and dead and held messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pydantic import BaseModel, Field

from bullpen.api.context import caller, read, require_reach, write
from bullpen.api.route import APPROVE, READ, Routes
from bullpen.api.schemas import (
    MAX_PAGE_ROWS,
    Answer,
    CamelAnswer,
    Count,
    Done,
    FilesColumn,
    Page,
    Rows,
    StrictBody,
)
from bullpen.core.bulk import kill, lock_message_in_state, retry_all_dead
from bullpen.core.errors import Conflict, LaneError, UnknownMessage
from bullpen.core.inspect.lanes import list_lanes
from bullpen.core.inspect.messages import MessageRecord, get_message_by_number, list_dead_or_held
from bullpen.core.inspect.queue import (
    MAX_COUNTED,
    RunningMessage,
    count_completed,
    list_running,
    queue_status,
)
from bullpen.core.message import ErrorKind
from bullpen.core.queue.manage import drop, resume, retry
from bullpen.core.states import LaneState, MessageState
from bullpen.core.store.transaction import Transaction, map_page

routes = Routes("queue", "The queue: counts, and processing, dead and held messages.")

Text = Annotated[str, Field(max_length=200)]


class QueueDepth(Answer):
    """Counts of the queue, under Bullpen's and TinyAGI's names."""

    pending: int
    processing: int
    dead: int
    held: int = Field(description="Messages that wait for a person's decision.")
    incoming: int = Field(description="The same as `pending`.")
    queued: int = Field(0, description="Always 0, because claimed messages are `processing`.")
    completed: int = Field(
        description=f"Completed messages of the last day, counted up to {MAX_COUNTED}."
    )
    outgoing: int = Field(description="Responses that are not delivered yet.")


class AgentDepth(Answer):
    """Counts of an agent's lane."""

    agent: str
    pending: int
    queued: int = Field(0, description="Always 0, because claimed messages are `processing`.")
    processing: int
    state: LaneState
    reason: str | None = Field(description="Why the lane is not active.")


class AgentDepthList(Rows[AgentDepth]):
    """Counts of the agents' lanes."""


class RunningAnswer(CamelAnswer):
    """A message that is processing."""

    id: int
    message_id: str
    channel: str
    sender: str
    message: str
    agent: str
    status: MessageState
    process_alive: bool = Field(description="Whether its worker's lease is valid.")
    started_at: int
    duration: int = Field(description="Milliseconds since the claim.")
    worker: str
    lease_expires_at: int
    conversation_id: str


class RunningList(Rows[RunningAnswer]):
    """Messages that are processing."""


class KilledAnswer(CamelAnswer, Done):
    """The cancelled message."""

    agent: str
    process_killed: bool = Field(description="Whether a run was stopped.")


class DeadData(CamelAnswer):
    """The text and the sender of a dead message."""

    channel: str
    sender: str
    sender_id: str | None
    message: str
    message_id: str
    agent: str


class DeadAnswer(CamelAnswer):
    """A dead message."""

    id: int
    data: DeadData
    failed_reason: str | None = Field(validation_alias="last_error")
    attempts_made: int = Field(description="Number of failed runs and crashes.")
    timestamp: int = Field(validation_alias="updated_at", description="When it became dead.")
    kind: str | None = Field(
        validation_alias="error_kind", description="The kind of its last error."
    )
    conversation_id: str
    created_at: int


class DeadList(Rows[DeadAnswer]):
    """Dead messages."""


class HeldAnswer(Answer):
    """A held message."""

    id: int
    message_id: str
    agent: str
    from_agent: str | None
    channel: str
    sender: str
    sender_id: str | None
    message: str
    files: FilesColumn
    conversation_id: str
    hop: int
    team_id: str | None
    reason: str | None = Field(validation_alias="last_error")
    kind: str | None = Field(
        validation_alias="error_kind", description="The kind of error, if an error held it."
    )
    created_at: int
    held_at: int = Field(validation_alias="updated_at")


class HeldList(Rows[HeldAnswer]):
    """Held messages."""


class DeadOrHeldQuery(Page):
    """Filters of dead or held messages."""

    agent: Text | None = None
    kind: Text | None = Field(None, description="The kind of the last error.")


class NumberPath(BaseModel):
    """Selects a message."""

    number: str = Field(max_length=200, description="The message's number or id.")


class RetryDeadBody(StrictBody):
    """Filters of dead messages to retry."""

    agent: Text | None = None
    kind: ErrorKind | None = Field(None, description="The kind of the last error.")
    limit: int = Field(
        MAX_PAGE_ROWS, ge=1, le=MAX_PAGE_ROWS, description="Maximum number of messages."
    )


@routes.get("/api/queue/status", READ)
def status() -> QueueDepth:
    """Get the counts of the queue.

    Requires a key that reaches all agents.
    """
    require_reach(None)
    with read() as tx:
        status = queue_status(tx)
        completed = count_completed(tx)
    return QueueDepth.from_row(status, incoming=status.pending, completed=completed)


@routes.get("/api/queue/agents", READ)
def agents() -> AgentDepthList:
    """Get the counts of each lane that the key reaches."""
    with read() as tx:
        lanes = list_lanes(tx)
    return AgentDepthList.of(
        lane
        for lane in lanes
        if lane.state != LaneState.ARCHIVED and caller().can_reach(lane.agent)
    )


@routes.get("/api/queue/processing", READ)
def processing() -> RunningList:
    """List the messages that are processing, longest first.

    The list has only the agents that the key reaches.
    """
    with read() as tx:
        runs = list_running(tx)
    return RunningList.of(
        _running_answer(each, tx.now) for each in runs if caller().can_reach(each.message.agent)
    )


@routes.post("/api/queue/processing/<number>/kill", APPROVE, UnknownMessage, Conflict)
def kill_one(path: NumberPath) -> KilledAnswer:
    """Cancel a message, and stop its run if it is processing."""
    with write() as tx:
        require_reach(get_message_by_number(tx, path.number).agent)
        killed = kill(tx, path.number)
    return KilledAnswer(agent=killed.agent, process_killed=killed.ran)


@routes.get("/api/queue/dead", READ)
def dead(query: DeadOrHeldQuery) -> DeadList:
    """List dead messages, newest failure first.

    With `since_id`, the messages with higher numbers, oldest first. A key for some agents must give
    one of them as `agent`.
    """
    messages = _list_dead_or_held(MessageState.DEAD, query)
    return DeadList.page(map_page(messages, _dead_answer), query)


@routes.post("/api/queue/dead/retry", APPROVE, LaneError)
def retry_dead(body: RetryDeadBody) -> Count:
    """Retry dead messages, oldest first.

    `agent` and `kind` select the messages of one agent or one kind of error.
    """
    require_reach(body.agent)
    kind = None if body.kind is None else body.kind.value
    with write() as tx:
        return Count(count=retry_all_dead(tx, body.agent, kind, body.limit))


@routes.post("/api/queue/dead/<number>/retry", APPROVE, UnknownMessage, Conflict, LaneError)
def retry_one(path: NumberPath) -> Done:
    """Retry a dead message, and reset its counts of failures."""
    return _decide(path, MessageState.DEAD, retry)


@routes.delete("/api/queue/dead/<number>", APPROVE, UnknownMessage, Conflict)
def drop_one(path: NumberPath) -> Done:
    """Delete a dead message permanently."""
    return _decide(path, MessageState.DEAD, drop)


@routes.get("/api/queue/held", READ)
def held(query: DeadOrHeldQuery) -> HeldList:
    """List held messages with their reasons, newest first.

    With `since_id`, the messages with higher numbers, oldest first. A key for some agents must give
    one of them as `agent`.
    """
    return HeldList.page(_list_dead_or_held(MessageState.HELD, query), query)


@routes.post("/api/queue/held/<number>/let-go", APPROVE, UnknownMessage, Conflict, LaneError)
def let_go_one(path: NumberPath) -> Done:
    """Resume a held message."""
    return _decide(path, MessageState.HELD, resume)


def _decide(
    path: NumberPath, state: MessageState, verb: Callable[[Transaction, str], None]
) -> Done:
    """Apply the verb to this message, which must be in this state."""
    with write() as tx:
        require_reach(get_message_by_number(tx, path.number).agent)
        verb(tx, lock_message_in_state(tx, path.number, state).message_id)
    return Done()


def _list_dead_or_held(state: MessageState, query: DeadOrHeldQuery) -> list[MessageRecord]:
    require_reach(query.agent)
    with read() as tx:
        return list_dead_or_held(
            tx, state, agent=query.agent, kind=query.kind, since=query.since_id, limit=query.limit
        )


def _running_answer(run: RunningMessage, now: int) -> RunningAnswer:
    return RunningAnswer.from_row(
        run.message,
        process_alive=run.lease_expires_at > now,
        started_at=run.claimed_at,
        duration=max(0, now - run.claimed_at),
        worker=run.worker,
        lease_expires_at=run.lease_expires_at,
    )


def _dead_answer(message: MessageRecord) -> DeadAnswer:
    return DeadAnswer.from_row(
        message, data=message, attempts_made=message.retry_count + message.crash_count
    )
