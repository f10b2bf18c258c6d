"""What a simulation keeps: unfinished messages, responses and runs, and the lanes of agents."""

from __future__ import annotations

from dataclasses import dataclass, field

from bullpen.core.message import ErrorKind, Message, Priority
from bullpen.core.states import MessageState, ResponseState
from bullpen.ops.demo.company import AgentProfile, Person
from bullpen.ops.demo.rows import MessageRow, ResponseRow


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

    row: int
    message_id: str
    channel: str
    sender: str
    sender_id: str | None
    text: str
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
    waiting: bool = False
    """In the heap of its lane."""
    retries: int = 0
    crashes: int = 0
    runs: int = 0
    error: str | None = None
    error_kind: ErrorKind | None = None
    claimed_by: str | None = None
    fails_for_good: bool = False
    """Its run fails, and nobody has decided about it at the end."""

    def as_message(self) -> Message:
        """The message as a processor sees it."""
        return Message(
            id=self.row,
            message_id=self.message_id,
            channel=self.channel,
            sender=self.sender,
            sender_id=self.sender_id,
            message=self.text,
            agent=self.agent,
            from_agent=self.from_agent,
            files=None,
            retry_count=self.retries,
            crash_count=self.crashes,
            conversation_id=self.conversation_id,
            parent_id=self.parent_id,
            hop=self.hop,
            team_id=self.team_id,
            reply_to=self.reply_to,
            priority=int(Priority.NORMAL),
            deadline=None,
            payload=None,
            schema=None,
            written_at=None,
            created_at=self.created_at,
            available_at=self.available_at,
            runs=self.runs,
            conversation_at=self.conversation.began_at,
        )

    def as_row(self) -> MessageRow:
        """The row of the message as it is now."""
        return MessageRow(
            id=self.row,
            message_id=self.message_id,
            channel=self.channel,
            sender=self.sender,
            sender_id=self.sender_id,
            message=self.text,
            agent=self.agent,
            from_agent=self.from_agent,
            status=self.status.value,
            retry_count=self.retries,
            crash_count=self.crashes,
            last_error=self.error,
            error_kind=None if self.error_kind is None else self.error_kind.value,
            claimed_by=self.claimed_by,
            conversation_id=self.conversation_id,
            parent_id=self.parent_id,
            hop=self.hop,
            team_id=self.team_id,
            reply_to=self.reply_to,
            batch_key=self.batch_key,
            priority=int(Priority.NORMAL),
            sort_key=self.due_at,
            ready=self.ready,
            due_at=self.due_at,
            available_at=self.available_at,
            created_at=self.created_at,
            updated_at=self.updated_at,
            runs=self.runs,
            conversation_at=self.conversation.began_at,
        )


@dataclass(slots=True, eq=False)
class StoredResponse:
    """A response to a person that is not delivered yet; also what its events are about."""

    row: int
    message_id: str
    agent: str
    conversation_id: str
    person: Person
    text: str
    question: str
    created_at: int
    expires_at: int
    available_at: int
    parts: int
    status: ResponseState = ResponseState.PENDING
    tries: int = 0
    error: str | None = None
    possible_duplicate: bool = False
    outcome: ResponseState = ResponseState.ACKED
    """How the delivery in progress ends."""

    def as_row(self, acked_at: int | None) -> ResponseRow:
        """The row of the response as it is now."""
        return ResponseRow(
            id=self.row,
            message_id=self.message_id,
            channel=self.person.channel,
            sender=self.person.name,
            sender_id=self.person.sender_id,
            message=self.text,
            original_message=self.question,
            agent=self.agent,
            status=self.status.value,
            conversation_id=self.conversation_id,
            reply_to=self.person.reply_to,
            seq=0,
            delivery_attempts=self.tries,
            parts_sent=self.parts if self.status is ResponseState.ACKED else 0,
            sending=False,
            possible_duplicate=self.possible_duplicate,
            available_at=self.available_at,
            expires_at=self.expires_at,
            last_error=self.error,
            created_at=self.created_at,
            acked_at=acked_at,
        )


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
