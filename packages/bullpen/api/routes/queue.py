"""The queue: how full it is, what runs, and what waits for a person."""

from __future__ import annotations

from typing import Annotated

from flask import Response
from pydantic import BaseModel, Field, RootModel

from bullpen.api.context import caller, read, require_reach, write
from bullpen.api.route import APPROVE, READ, Routes
from bullpen.api.schemas import (
    MAX_PAGE_ROWS,
    Count,
    Done,
    Page,
    StrictBody,
    list_response,
    parse_files,
)
from bullpen.core.bulk import kill, list_dead_or_held, lock_message_in_state, retry_all_dead
from bullpen.core.errors import Conflict, LaneError, UnknownMessage
from bullpen.core.inspect.messages import MessageRecord, get_message_by_number
from bullpen.core.inspect.queue import MAX_COUNTED as MOST_COMPLETED
from bullpen.core.inspect.queue import (
    RunningMessage,
    count_completed,
    list_lanes,
    list_running,
    queue_status,
)
from bullpen.core.message import ErrorKind
from bullpen.core.queue.manage import drop, resume, retry
from bullpen.core.states import LaneState, MessageState

routes = Routes("queue", "How full the queue is, what runs, and what waits for a person.")

Text = Annotated[str, Field(max_length=200)]


class QueueDepth(BaseModel):
    """The queue in numbers: as the reference's pages read it, and as its documents say."""

    pending: int
    processing: int
    dead: int
    held: int = Field(description="they wait for a person")
    incoming: int = Field(description="the same as `pending`")
    queued: int = Field(0, description="always 0: what is claimed runs")
    completed: int = Field(description=f"of the last day, counted up to {MOST_COMPLETED}")
    outgoing: int = Field(description="answers that are to be delivered")


class AgentDepth(BaseModel):
    """An agent's queue in numbers."""

    agent: str
    pending: int
    queued: int = Field(0, description="always 0: what is claimed runs")
    processing: int
    state: LaneState
    reason: str | None = Field(description="why it is not active")


class AgentDepthList(RootModel[list[AgentDepth]]):
    """Agents' queues in numbers."""


class RunningAnswer(BaseModel):
    """A message that is being answered."""

    id: int
    messageId: str  # noqa: N815 - as the reference's clients read it
    channel: str
    sender: str
    message: str
    agent: str
    status: MessageState
    processAlive: bool = Field(description="whether its worker has been heard of")  # noqa: N815
    startedAt: int  # noqa: N815
    duration: int = Field(description="milliseconds")
    worker: str
    leaseExpiresAt: int  # noqa: N815
    conversationId: str  # noqa: N815

    @classmethod
    def of(cls, run: RunningMessage, now: int) -> RunningAnswer:
        """The message, as it is shown."""
        seen = run.message
        return cls(
            id=seen.id,
            messageId=seen.message_id,
            channel=seen.channel,
            sender=seen.sender,
            message=seen.message,
            agent=seen.agent,
            status=MessageState(seen.status),
            processAlive=run.lease_expires_at > now,
            startedAt=run.claimed_at,
            duration=max(0, now - run.claimed_at),
            worker=run.worker,
            leaseExpiresAt=run.lease_expires_at,
            conversationId=seen.conversation_id,
        )


class RunningList(RootModel[list[RunningAnswer]]):
    """What runs."""


class KilledAnswer(Done):
    """The message is cancelled."""

    agent: str
    processKilled: bool = Field(  # noqa: N815
        description="false if it only waited"
    )


class DeadData(BaseModel):
    """What was asked."""

    channel: str
    sender: str
    senderId: str | None  # noqa: N815
    message: str
    messageId: str  # noqa: N815
    agent: str


class DeadAnswer(BaseModel):
    """A message that is not tried again by itself."""

    id: int
    data: DeadData
    failedReason: str | None  # noqa: N815
    attemptsMade: int = Field(description="failed runs and crashes")  # noqa: N815
    timestamp: int = Field(description="when it died")
    kind: str | None = Field(description="the kind of its last error")
    conversationId: str  # noqa: N815
    createdAt: int  # noqa: N815

    @classmethod
    def of(cls, seen: MessageRecord) -> DeadAnswer:
        """The message, as it is shown."""
        return cls(
            id=seen.id,
            data=DeadData(
                channel=seen.channel,
                sender=seen.sender,
                senderId=seen.sender_id,
                message=seen.message,
                messageId=seen.message_id,
                agent=seen.agent,
            ),
            failedReason=seen.last_error,
            attemptsMade=seen.retry_count + seen.crash_count,
            timestamp=seen.updated_at,
            kind=seen.error_kind,
            conversationId=seen.conversation_id,
            createdAt=seen.created_at,
        )


class DeadList(RootModel[list[DeadAnswer]]):
    """The dead."""


class HeldAnswer(BaseModel):
    """A message that waits for a person."""

    id: int
    message_id: str
    agent: str
    from_agent: str | None
    channel: str
    sender: str
    sender_id: str | None
    message: str
    files: list[str]
    conversation_id: str
    hop: int
    team_id: str | None
    reason: str | None
    kind: str | None = Field(description="the kind of error, if it is one")
    created_at: int
    held_at: int

    @classmethod
    def of(cls, seen: MessageRecord) -> HeldAnswer:
        """The message, as it is shown."""
        return cls(
            id=seen.id,
            message_id=seen.message_id,
            agent=seen.agent,
            from_agent=seen.from_agent,
            channel=seen.channel,
            sender=seen.sender,
            sender_id=seen.sender_id,
            message=seen.message,
            files=parse_files(seen.files),
            conversation_id=seen.conversation_id,
            hop=seen.hop,
            team_id=seen.team_id,
            reason=seen.last_error,
            kind=seen.error_kind,
            created_at=seen.created_at,
            held_at=seen.updated_at,
        )


class HeldList(RootModel[list[HeldAnswer]]):
    """The held."""


class DeadOrHeldQuery(Page):
    """Which of them."""

    agent: Text | None = None
    kind: Text | None = Field(None, description="the kind of the last error")


class NumberPath(BaseModel):
    """Which message."""

    number: str = Field(max_length=200, description="the message's number, or its id")


class RetryDeadBody(StrictBody):
    """Which of the dead."""

    agent: Text | None = None
    kind: ErrorKind | None = Field(None, description="the kind of the last error")
    limit: int = Field(MAX_PAGE_ROWS, ge=1, le=MAX_PAGE_ROWS, description="how many at the most")


@routes.get("/api/queue/status", READ)
def status() -> QueueDepth:
    """Say how full the queue is. For keys that reach all agents."""
    require_reach(None)
    with read() as tx:
        found = queue_status(tx)
        done = count_completed(tx)
    return QueueDepth(
        pending=found.pending,
        processing=found.processing,
        dead=found.dead,
        held=found.held,
        incoming=found.pending,
        completed=done,
        outgoing=found.outgoing,
    )


@routes.get("/api/queue/agents", READ)
def agents() -> AgentDepthList:
    """Say how full each agent's queue is, as far as the key reaches."""
    with read() as tx:
        lanes = list_lanes(tx)
    return AgentDepthList(
        [
            AgentDepth(
                agent=lane.agent,
                pending=lane.pending,
                processing=lane.processing,
                state=LaneState(lane.state),
                reason=lane.reason,
            )
            for lane in lanes
            if lane.state != LaneState.ARCHIVED and caller().can_reach(lane.agent)
        ]
    )


@routes.get("/api/queue/processing", READ)
def processing() -> RunningList:
    """List what is being answered, the longest first, as far as the key reaches."""
    with read() as tx:
        found = list_running(tx)
    return RunningList(
        [RunningAnswer.of(each, tx.now) for each in found if caller().can_reach(each.message.agent)]
    )


@routes.post("/api/queue/processing/<number>/kill", APPROVE, UnknownMessage, Conflict)
def kill_one(path: NumberPath) -> KilledAnswer:
    """Cancel this message and no other; if it is being answered, its run is stopped."""
    with write() as tx:
        require_reach(get_message_by_number(tx, path.number).agent)
        killed = kill(tx, path.number)
    return KilledAnswer(agent=killed.agent, processKilled=killed.ran)


@routes.get("/api/queue/dead", READ)
def dead(query: DeadOrHeldQuery) -> Annotated[Response, DeadList]:
    """List the messages that are not tried again by themselves, the latest to die first.

    With `since_id` those of higher numbers, the oldest first. A key for some agents must name
    one of them.
    """
    found = _stuck(MessageState.DEAD, query)
    return list_response(DeadList([DeadAnswer.of(each) for each in found]), _numbers(found), query)


@routes.post("/api/queue/dead/retry", APPROVE, LaneError)
def retry_dead(body: RetryDeadBody) -> Count:
    """Try the dead again, those that came first first, of one agent or one kind of error."""
    require_reach(body.agent)
    kind = None if body.kind is None else body.kind.value
    with write() as tx:
        return Count(count=retry_all_dead(tx, body.agent, kind, body.limit))


@routes.post("/api/queue/dead/<number>/retry", APPROVE, UnknownMessage, Conflict, LaneError)
def retry_one(path: NumberPath) -> Done:
    """Try a dead message again; its failures are forgotten."""
    with write() as tx:
        require_reach(get_message_by_number(tx, path.number).agent)
        retry(tx, lock_message_in_state(tx, path.number, MessageState.DEAD).message_id)
    return Done()


@routes.delete("/api/queue/dead/<number>", APPROVE, UnknownMessage, Conflict)
def drop_one(path: NumberPath) -> Done:
    """Delete a dead message for good."""
    with write() as tx:
        require_reach(get_message_by_number(tx, path.number).agent)
        drop(tx, lock_message_in_state(tx, path.number, MessageState.DEAD).message_id)
    return Done()


@routes.get("/api/queue/held", READ)
def held(query: DeadOrHeldQuery) -> Annotated[Response, HeldList]:
    """List the messages that wait for a person, and why, the latest first.

    With `since_id` those of higher numbers, the oldest first. A key for some agents must name
    one of them.
    """
    found = _stuck(MessageState.HELD, query)
    return list_response(HeldList([HeldAnswer.of(each) for each in found]), _numbers(found), query)


@routes.post("/api/queue/held/<number>/let-go", APPROVE, UnknownMessage, Conflict, LaneError)
def let_go_one(path: NumberPath) -> Done:
    """Let a held message go on."""
    with write() as tx:
        require_reach(get_message_by_number(tx, path.number).agent)
        resume(tx, lock_message_in_state(tx, path.number, MessageState.HELD).message_id)
    return Done()


def _stuck(state: MessageState, query: DeadOrHeldQuery) -> list[MessageRecord]:
    require_reach(query.agent)
    with read() as tx:
        return list_dead_or_held(
            tx, state, agent=query.agent, kind=query.kind, since=query.since_id, limit=query.limit
        )


def _numbers(found: list[MessageRecord]) -> list[int]:
    return [each.id for each in found]
