"""The types of the queue: messages, claims and outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum

from bullpen.core.clock import MINUTE
from bullpen.core.errors import BadText
from bullpen.core.registry import CHANNELS

SEPARATOR = "\x1f"
"""Separates the parts of a reply address, a batch key or a session key."""

ROOM = "chatroom"
"""The channel of room posts; one run answers all pending posts of an agent."""

INTERNAL = "internal"
"""The channel of handoffs that come from a room post or a heartbeat, and not from a person."""

HEARTBEAT = "heartbeat"
"""The channel of heartbeats, on which an agent may send an empty answer."""

ALONE = "alone"
"""The batch key of a message whose run failed: it is claimed alone."""

INTERNAL_CHANNELS = (ROOM, INTERNAL, HEARTBEAT)
"""The channels without responses to people."""

SCHEDULE = "schedule"
"""The channel of schedules without a reply address; its responses can be read for a day."""

PULL_CHANNELS = frozenset(
    {*(each.name for each in CHANNELS.built_in.values() if each.pull), HEARTBEAT, SCHEDULE}
)
"""The channels without a client: unread responses are acked after a day."""


class Priority(IntEnum):
    """Five tiers. Ten minutes of waiting count as much as one tier."""

    CRITICAL = 0
    HIGH = 1
    NORMAL = 2
    LOW = 3
    BACKGROUND = 4

    @property
    def weight(self) -> int:
        """The milliseconds of waiting that equal this tier's advantage over the lowest one."""
        return (Priority.BACKGROUND - self) * 10 * MINUTE


class ErrorKind(StrEnum):
    """The kind of a run's failure, which decides what happens to its messages."""

    RETRYABLE = "retryable"
    RATE_LIMIT = "rate_limit"
    PERMANENT = "permanent"
    AUTH = "auth"
    QUOTA = "quota"
    SETUP = "setup"
    """A program, directory or provider that the agent needs is missing."""
    NEEDS_PERSON = "needs_person"
    CRASH = "crash"


@dataclass(frozen=True, slots=True)
class ReplyTo:
    """The reply address on a platform: a chat, a thread in it, and the message to answer."""

    chat: str = ""
    thread: str = ""
    message: str = ""

    def __post_init__(self) -> None:
        if SEPARATOR in f"{self.chat}{self.thread}{self.message}":
            raise BadText("the reply address has a unit separator (U+001F)")

    def __str__(self) -> str:
        return SEPARATOR.join((self.chat, self.thread, self.message))

    @classmethod
    def parse(cls, text: str) -> ReplyTo:
        """Parse the text that `str` returns."""
        return cls(*text.split(SEPARATOR))


def reply_place(channel: str, sender: str, sender_id: str | None, reply_to: ReplyTo | None) -> str:
    """A text that is equal for all messages of one person, or of one chat or thread."""
    if reply_to is None:
        who = f"@{sender}" if sender_id is None else f"#{sender_id}"
        return SEPARATOR.join((channel, who))
    return SEPARATOR.join((channel, reply_to.chat, reply_to.thread))


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMessage:
    """A new message."""

    agent: str
    message: str
    channel: str = "api"
    sender: str = ""
    sender_id: str | None = None
    message_id: str | None = None
    """An id chosen by the client; a second message with it is refused as a duplicate."""
    event_ids: tuple[str, ...] = ()
    """The platform's ids of its event. A message with one that was stored before is a redelivery,
    and ignored."""
    from_agent: str | None = None
    files: tuple[str, ...] = ()
    conversation_id: str | None = None
    conversation_at: int | None = None
    """When its conversation began; None: with this message."""
    parent_id: str | None = None
    hop: int = 0
    team_id: str | None = None
    reply_to: ReplyTo | None = None
    priority: Priority = Priority.NORMAL
    delay: int = 0
    deadline: int | None = None
    payload: str | None = None
    schema: str | None = None
    hold_reason: str | None = None
    """Why it is held for a person; None is not held."""
    key_id: str | None = None
    """The key that sends it, if its pending messages are limited."""
    origin: str | None = None
    """Its author if not a person or an agent: `schedule`. The prefix of its id; it runs alone."""
    written_at: int | None = None
    """When it was written, by the platform's clock."""

    @property
    def bytes(self) -> int:
        """The size of its text and payload in bytes."""
        return len(self.message.encode()) + len((self.payload or "").encode())

    @property
    def batch_key(self) -> str | None:
        """A key that is equal for messages that one run may answer together; None runs alone."""
        if self.channel in (ROOM, HEARTBEAT):
            return self.channel
        if self.origin is not None or self.from_agent is not None:
            return None
        return reply_place(self.channel, self.sender, self.sender_id, self.reply_to)


@dataclass(frozen=True, slots=True)
class Accepted:
    """The receipt for an enqueued message."""

    message_id: str
    fresh: bool = True
    """False if the platform event was stored before."""


@dataclass(frozen=True, slots=True)
class Message:
    """A claimed message with the columns that a run needs."""

    id: int
    message_id: str
    channel: str
    sender: str
    sender_id: str | None
    message: str
    agent: str
    from_agent: str | None
    files: str | None
    retry_count: int
    crash_count: int
    conversation_id: str
    parent_id: str | None
    hop: int
    team_id: str | None
    reply_to: str | None
    priority: int
    deadline: int | None
    payload: str | None
    schema: str | None
    written_at: int | None
    """When it was written, by the platform's clock."""
    created_at: int
    available_at: int
    """When it could be claimed."""
    runs: int
    """The number of its runs, this one included."""
    conversation_at: int | None
    """When its conversation began; None if it was stored before this was recorded."""

    @property
    def began_at(self) -> int:
        """When its conversation began, as far as it is known."""
        return self.created_at if self.conversation_at is None else self.conversation_at


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to finish these messages until the lease expires."""

    token: str
    agent: str
    lease_expires_at: int
    messages: tuple[Message, ...]

    @property
    def primary(self) -> Message:
        """The message that the run answers; the others are its context."""
        return self.messages[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A response to the person who asked."""

    message: str
    files: tuple[str, ...] = ()
    metadata: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomPost:
    """A post in a team's room, and the agents that receive it."""

    team_id: str
    message: str
    to: tuple[str, ...] = ()
    hold_reason: str | None = None
    """Why it is held for a person; None is not held."""


MAX_USAGE = 1_000_000_000
"""More tokens or dollars than any run needs, but within the range of every column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The provider of a run, and its tokens and cost."""

    provider: str | None = None
    model: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    started_at: int | None = None

    def __post_init__(self) -> None:
        for name in ("input_tokens", "output_tokens", "cost"):
            if getattr(self, name) > MAX_USAGE:
                object.__setattr__(self, name, MAX_USAGE)


NO_USAGE = Usage()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A run that succeeded."""

    answers: tuple[Answer, ...] = ()
    handoffs: tuple[NewMessage, ...] = ()
    room_posts: tuple[RoomPost, ...] = ()
    transcript: str | None = None
    """The agent's output for the history; with None, its answers, handoffs and posts."""
    usage: Usage = NO_USAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A run that failed."""

    kind: ErrorKind
    error: str
    retry_after: int | None = None
    """The milliseconds that the provider asked to wait."""
    usage: Usage = NO_USAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutput:
    """An agent's text with its tags, and its files."""

    text: str
    files: tuple[str, ...] = ()
    metadata: str | None = None
    usage: Usage = NO_USAGE
