"""The state of a simulation: unfinished messages and responses, and the lanes of agents.

Fields have the names of columns; a column that a class does not have is NULL in every row.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from bullpen.core.message import ErrorKind, Message, Priority
from bullpen.core.states import MessageState, ResponseState
from bullpen.ops.demo.company import AgentProfile, Person

_MESSAGE_FIELDS = tuple(each.name for each in fields(Message))


@dataclass(slots=True, eq=False)
class Conversation:
    """A conversation with the number of its unfinished messages."""

    id: str
    began_at: int
    team: str | None
    person: Person
    open: int = 0


@dataclass(slots=True, eq=False)
class QueuedMessage:
    """A message that is not finished; also what events are about."""

    priority: ClassVar[int] = int(Priority.NORMAL)

    id: int
    message_id: str
    channel: str
    sender: str
    sender_id: str | None
    message: str
    agent: str
    from_agent: str | None
    conversation: Conversation
    conversation_id: str
    parent_id: str | None
    hop: int
    team_id: str | None
    reply_to: str | None
    batch_key: str | None
    created_at: int
    due_at: int
    available_at: int
    updated_at: int
    status: MessageState = MessageState.PENDING
    ready: bool = True
    retry_count: int = 0
    crash_count: int = 0
    runs: int = 0
    last_error: str | None = None
    error_kind: ErrorKind | None = None
    claimed_by: str | None = None
    fails_for_good: bool = False
    """Its run fails, and nobody has decided about it at the end."""

    @property
    def sort_key(self) -> int:
        """Its place in the lane; all messages of a history have the same priority."""
        return self.due_at

    @property
    def conversation_at(self) -> int:
        """When its conversation began."""
        return self.conversation.began_at

    def as_message(self) -> Message:
        """The message as a processor sees it."""
        values: dict[str, Any] = {name: getattr(self, name, None) for name in _MESSAGE_FIELDS}
        return Message(**values)


@dataclass(slots=True, eq=False)
class StoredResponse:
    """A response to a person that is not delivered yet; also what its events are about."""

    seq: ClassVar[int] = 0
    sending: ClassVar[bool] = False
    possible_duplicate: ClassVar[bool] = False

    id: int
    message_id: str
    agent: str
    conversation_id: str
    person: Person
    message: str
    original_message: str
    created_at: int
    expires_at: int
    available_at: int
    parts: int
    status: ResponseState = ResponseState.PENDING
    delivery_attempts: int = 0
    last_error: str | None = None
    acked_at: int | None = None
    outcome: ResponseState = ResponseState.ACKED
    """How the delivery in progress ends."""

    @property
    def channel(self) -> str:
        """The channel of the person."""
        return self.person.channel

    @property
    def sender(self) -> str:
        """The name of the person."""
        return self.person.name

    @property
    def sender_id(self) -> str:
        """The id of the person."""
        return self.person.sender_id

    @property
    def reply_to(self) -> str:
        """The address of the person."""
        return self.person.reply_to

    @property
    def parts_sent(self) -> int:
        """All parts, or none."""
        return self.parts if self.status is ResponseState.ACKED else 0


@dataclass(slots=True, eq=False)
class SimulatedLane:
    """The lane of an agent."""

    profile: AgentProfile
    waiting: list[tuple[int, int, QueuedMessage]] = field(default_factory=list)
    """A heap of ready messages by their sort key."""
    busy: bool = False
    paused: bool = False
    not_before: int = 0
    newest_at: int | None = None
    claimed_at: int = 0
    claimed_by: str | None = None
