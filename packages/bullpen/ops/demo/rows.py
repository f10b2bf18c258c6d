"""The rows of a history: a named tuple for each table, with its fields in the order of the insert.

A column that is missing here is NULL in every row of a history.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class AttemptRow(NamedTuple):
    """A row of `attempts`, in the order in which runs finish; the database numbers them."""

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
    available_at: int
    conversation_at: int
    attempt: int
    dead: int
    wait: int | None


class EventRow(NamedTuple):
    """A row of `events`, in the order of time; the database numbers them."""

    type: str
    agent: str | None
    conversation_id: str | None
    message_id: str | None
    data: str | None
    created_at: int


class MessageRow(NamedTuple):
    """A row of `messages` or of its archive."""

    id: int
    message_id: str
    channel: str
    sender: str
    sender_id: str | None
    message: str
    agent: str
    from_agent: str | None
    status: str
    retry_count: int
    crash_count: int
    last_error: str | None
    error_kind: str | None
    claimed_by: str | None
    conversation_id: str
    parent_id: str | None
    hop: int
    team_id: str | None
    reply_to: str | None
    batch_key: str | None
    priority: int
    sort_key: int
    ready: bool
    due_at: int
    available_at: int
    created_at: int
    updated_at: int
    runs: int
    conversation_at: int


class ResponseRow(NamedTuple):
    """A row of `responses` or of its archive."""

    id: int
    message_id: str
    channel: str
    sender: str
    sender_id: str | None
    message: str
    original_message: str
    agent: str
    status: str
    conversation_id: str
    reply_to: str | None
    seq: int
    delivery_attempts: int
    parts_sent: int
    sending: bool
    possible_duplicate: bool
    available_at: int
    expires_at: int
    last_error: str | None
    created_at: int
    acked_at: int | None


class HistoryRow(NamedTuple):
    """A row of `agent_messages`."""

    id: int
    agent_id: str
    role: str
    channel: str
    sender: str
    message_id: str
    content: str
    created_at: int


class PostRow(NamedTuple):
    """A row of `chat_messages`."""

    id: int
    team_id: str
    from_agent: str
    message: str
    created_at: int


class SenderRow(NamedTuple):
    """A row of `senders`."""

    channel: str
    sender_id: str
    name: str
    tier: str
    approved_at: int
    approved_by: str
    first_at: int
    last_at: int


class ChatRow(NamedTuple):
    """A row of `chats`: the direct chat of a sender."""

    channel: str
    chat: str
    direct: bool
    name: str
    person: str
    last_in_at: int
    last_out_at: int | None
    created_at: int
    updated_at: int


class LaneRow(NamedTuple):
    """The columns of an agent's lane that its messages determine."""

    agent: str
    pending: int
    head_key: int | None
    newest_at: int | None
    not_before: int | None
    claimed_by: str | None
    claimed_at: int


@dataclass(slots=True)
class Rows:
    """The rows of one part of a history, by table."""

    attempts: list[AttemptRow] = field(default_factory=list)
    events: list[EventRow] = field(default_factory=list)
    messages: list[MessageRow] = field(default_factory=list)
    messages_archive: list[MessageRow] = field(default_factory=list)
    responses: list[ResponseRow] = field(default_factory=list)
    responses_archive: list[ResponseRow] = field(default_factory=list)
    agent_messages: list[HistoryRow] = field(default_factory=list)
    chat_messages: list[PostRow] = field(default_factory=list)
    senders: list[SenderRow] = field(default_factory=list)
    chats: list[ChatRow] = field(default_factory=list)
    lanes: list[LaneRow] = field(default_factory=list)
    """The last part has them."""

    def tables(self) -> dict[str, Sequence[NamedTuple]]:
        """The rows to insert, by the name of their table."""
        return {
            "attempts": self.attempts,
            "events": self.events,
            "messages": self.messages,
            "messages_archive": self.messages_archive,
            "responses": self.responses,
            "responses_archive": self.responses_archive,
            "agent_messages": self.agent_messages,
            "chat_messages": self.chat_messages,
            "senders": self.senders,
            "chats": self.chats,
        }
