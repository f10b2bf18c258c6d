"""What was said, and what became of it."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, JsonValue

from bullpen.core.events.vocabulary import EVENT_TYPES
from bullpen.core.states import MessageState, ResponseState
from tests.cli.schemas.base import Document
from tests.cli.schemas.queue import Attempt


class Said(Document):
    id: int
    agent_id: str
    role: str
    channel: str
    sender: str
    message_id: str
    content: str
    created_at: int


class Person(Document):
    channel: str
    sender: str
    sender_id: str | None


class Post(Document):
    id: int
    team_id: str
    from_agent: str
    message: str
    created_at: int


class Posted(Document):
    id: int
    team_id: str
    conversation_id: str


class Totals(Document):
    messages: int
    attempts: int
    cost: float
    input_tokens: int
    output_tokens: int


class Traced(Document):
    id: int
    message_id: str
    channel: str
    sender: str
    sender_id: str | None
    message: str
    agent: str
    from_agent: str | None
    files: list[str]
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
    updated_at: int
    written_at: int | None
    archived: bool
    claimed_at: int | None
    started_at: int | None
    finished_at: int | None
    answered_with: str | None


class TracedResponse(Document):
    id: int
    message_id: str
    channel: str
    sender: str
    sender_id: str | None
    message: str
    original_message: str
    agent: str
    files: list[str]
    metadata: JsonValue
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


class Trace(Document):
    conversation_id: str
    state: str
    totals: Totals
    under_way: list[str]
    messages: list[Traced]
    attempts: list[Attempt]
    responses: list[TracedResponse]


class Spent(Document):
    runs: int
    cost: float
    input_tokens: int
    output_tokens: int


class Run(Document):
    message_id: str
    conversation_id: str
    message: str
    messages: int
    since: int
    worker: str
    conversation: Spent


class Worker(Document):
    id: str
    name: str
    provider: str
    model: str
    state: str
    reason: str | None
    until: int | None
    waiting: int
    run: Run | None
    today: Spent


class Counts(Document):
    pending: int
    processing: int
    held: int
    dead: int
    outgoing: int


class Watched(Document):
    at: int
    team: str | None
    leader: str | None
    queue: Counts
    processes: dict[str, int]
    agents: list[Worker]


def _known_event(type_: str) -> str:
    assert type_ in EVENT_TYPES
    return type_


class Event(Document):
    id: int
    type: Annotated[str, AfterValidator(_known_event)]
    agent: str | None
    conversation_id: str | None
    message_id: str | None
    data: dict[str, JsonValue]
    created_at: int


class Answer(Document):
    agent: str
    message: str
    files: list[str]


class Step(Document):
    what: str
    message_id: str
    state: str
    answers: list[Answer]
    messages: dict[MessageState, int]


class Demonstration(Document):
    home: str
    kept: bool
    seconds: float
    steps: list[Step]
    counts: dict[str, int]
