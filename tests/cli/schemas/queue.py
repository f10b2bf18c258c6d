"""Messages, responses, and what was done to many of them."""

from __future__ import annotations

from pydantic import Field

from bullpen.core.queue.lanes import Batching, Ordering, Overflow
from bullpen.core.states import LaneState, MessageState, ResponseState
from tests.cli.schemas.base import Document


class Message(Document):
    id: int
    message_id: str
    channel: str
    sender: str
    sender_id: str | None
    message: str
    agent: str
    from_agent: str | None
    files: str | None
    status: MessageState
    retry_count: int
    crash_count: int
    runs: int
    last_error: str | None
    error_kind: str | None
    claimed_by: str | None
    conversation_id: str
    conversation_at: int | None
    parent_id: str | None
    hop: int
    team_id: str | None
    reply_to: str | None
    priority: int
    available_at: int
    deadline: int | None
    payload: str | None
    schema_: str | None = Field(alias="schema")
    created_at: int
    written_at: int | None
    updated_at: int


class Waiting(Message):
    why: str
    since: int


class Lane(Document):
    agent: str
    state: LaneState
    reason: str | None
    outside: bool
    ordering: Ordering
    pending: int
    processing: int
    waiting_since: int | None
    not_before: int | None
    worker: str | None
    claimed_at: int | None
    lease_expires_at: int | None
    message_id: str | None
    message: str | None


class WholeLane(Document):
    agent: str
    outside: bool
    state: LaneState
    reason: str | None
    ordering: Ordering
    batching: Batching
    max_depth: int | None
    overflow: Overflow
    max_attempts: int
    pending: int
    not_before: int | None
    claimed_by: str | None
    claimed_at: int
    lease_expires_at: int | None
    batch: str | None
    created_at: int
    updated_at: int


class Hold(Document):
    reason: str
    held_at: int


class QueueStatus(Document):
    pending: int
    processing: int
    held: int
    dead: int
    outgoing: int
    undelivered: int
    unknown: int
    oldest_waiting_since: int | None
    processors: int
    hold: Hold | None
    lanes: list[Lane]


class DeathCause(Document):
    fingerprint: str
    kind: str
    error: str
    deaths: int
    first_at: int
    last_at: int
    told_at: int | None


class Attempt(Document):
    id: int
    message_id: str
    messages: int
    agent: str
    worker: str
    outcome: str
    error_kind: str | None
    error: str | None
    fingerprint: str | None
    retry_count: int
    provider: str | None
    model: str | None
    input_tokens: int
    output_tokens: int
    cost: float
    conversation_id: str
    hop: int
    team_id: str | None
    channel: str
    enqueued_at: int
    claimed_at: int
    started_at: int
    finished_at: int
    sender: str
    sender_id: str | None
    from_agent: str | None
    available_at: int | None
    conversation_at: int | None
    attempt: int | None
    dead: int
    wait: int | None


class Response(Document):
    id: int
    message_id: str
    channel: str
    sender: str
    sender_id: str | None
    message: str
    original_message: str
    agent: str
    files: str | None
    metadata: str | None
    status: ResponseState
    conversation_id: str
    seq: int
    delivery_attempts: int
    parts_sent: int
    possible_duplicate: bool
    available_at: int
    expires_at: int | None
    last_error: str | None
    tell_at: int | None
    created_at: int
    acked_at: int | None


class ResponseShown(Response):
    why: str
    next: list[str]


class MessageShown(Document):
    message: Message
    archived: bool
    lane: WholeLane | None
    ready: bool
    attended: bool
    before_it: int | None
    runs: list[Attempt]
    ran_with: str | None
    answers: list[Response]
    why: str
    next: list[str]


class Refused(Document):
    id: str
    code: str
    message: str
    hint: str


class Bulk(Document):
    dry_run: bool
    matched: int
    done: int
    moved: int
    failed: int
    interrupted: bool
    refused: list[Refused]


class LanesMoved(Document):
    dry_run: bool
    state: LaneState
    moved: list[str]
    already: list[str]


class Sent(Document):
    message_id: str


class SentResponse(Sent):
    response: int
