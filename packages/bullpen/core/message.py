"""Messages, claims and outcomes: the types of the queue."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum

from bullpen.core.clock import MINUTE
from bullpen.core.errors import BadText
from bullpen.core.registry import CHANNELS

SEPARATOR = "\x1f"
"""Between the parts of a reply address, a batch key or a session key."""

ROOM = "chatroom"
"""The channel of room posts; an agent's waiting posts are answered together."""

INTERNAL = "internal"
"""The channel of handoffs that no person waits for: from a room post or a heartbeat."""

HEARTBEAT = "heartbeat"
"""The channel of heartbeats, on which an agent may answer nothing."""

ALONE = "alone"
"""The batch key of a message whose run has failed: it is claimed by itself."""

INTERNAL_CHANNELS = (ROOM, INTERNAL, HEARTBEAT)
"""The channels on which no person waits for a response."""

SCHEDULE = "schedule"
"""The channel of schedules without a reply address; responses can be read there for a day."""

PULL_CHANNELS = frozenset(
    {*(each.name for each in CHANNELS.built_in.values() if each.pull), HEARTBEAT, SCHEDULE}
)
"""The channels without a client: a response that is not read within a day counts as read."""


class Priority(IntEnum):
    """Five tiers. A message that waits ten minutes longer counts as one tier higher."""

    CRITICAL = 0
    HIGH = 1
    NORMAL = 2
    LOW = 3
    BACKGROUND = 4

    @property
    def weight(self) -> int:
        """Milliseconds of waiting that this tier is worth over the lowest."""
        return (Priority.BACKGROUND - self) * 10 * MINUTE


class ErrorKind(StrEnum):
    """The kind of a run's failure, which decides what becomes of its messages."""

    RETRYABLE = "retryable"
    RATE_LIMIT = "rate_limit"
    PERMANENT = "permanent"
    AUTH = "auth"
    QUOTA = "quota"
    SETUP = "setup"
    """A program, a directory or a provider that the agent needs is missing."""
    NEEDS_PERSON = "needs_person"
    CRASH = "crash"


@dataclass(frozen=True, slots=True)
class ReplyTo:
    """Where a response goes on a platform: a chat, a thread in it, a message that it answers."""

    chat: str = ""
    thread: str = ""
    message: str = ""

    def __post_init__(self) -> None:
        if SEPARATOR in f"{self.chat}{self.thread}{self.message}":
            raise BadText("a reply address has a unit separator (U+001F)")

    def __str__(self) -> str:
        return SEPARATOR.join((self.chat, self.thread, self.message))

    @classmethod
    def parse(cls, text: str) -> ReplyTo:
        """Parse what `str` returns."""
        return cls(*text.split(SEPARATOR))


def reply_place(channel: str, sender: str, sender_id: str | None, reply_to: ReplyTo | None) -> str:
    """The same text for all messages of one person, or of one chat or thread on a platform."""
    if reply_to is None:
        who = f"@{sender}" if sender_id is None else f"#{sender_id}"
        return SEPARATOR.join((channel, who))
    return SEPARATOR.join((channel, reply_to.chat, reply_to.thread))


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMessage:
    """A message to be enqueued."""

    agent: str
    message: str
    channel: str = "api"
    sender: str = ""
    sender_id: str | None = None
    message_id: str | None = None
    """A client's own id makes the enqueue idempotent: a second one is refused as a duplicate."""
    event_id: str | None = None
    """The platform's event id: a redelivery is recognised and changes nothing."""
    from_agent: str | None = None
    files: tuple[str, ...] = ()
    conversation_id: str | None = None
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
    """The key that sends it, if what it may have waiting is bounded."""
    origin: str | None = None
    """What wrote it if not a person or an agent: `schedule`. Its id's prefix; it runs alone."""

    @property
    def bytes(self) -> int:
        """The bytes of its text and payload."""
        return len(self.message.encode()) + len((self.payload or "").encode())

    @property
    def batch_key(self) -> str | None:
        """Equal for messages that one run may answer together; None for one that runs alone."""
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
    """False if the message of this platform event was stored before."""


@dataclass(frozen=True, slots=True)
class Message:
    """A claimed message, as its run sees it: one field for each column that a run needs."""

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
    created_at: int


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to finish these messages, until the lease ends."""

    token: str
    agent: str
    lease_expires_at: int
    messages: tuple[Message, ...]

    @property
    def primary(self) -> Message:
        """The message that the run answers; the others are context."""
        return self.messages[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One response to the person who asked."""

    message: str
    files: tuple[str, ...] = ()
    metadata: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomPost:
    """A post in a team's room, and the agents to whom it is delivered."""

    team_id: str
    message: str
    to: tuple[str, ...] = ()
    hold_reason: str | None = None
    """Why it is held for a person; None is not held."""


MAX_USAGE = 1_000_000_000
"""More tokens, or dollars, than any run takes; every column can keep it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The provider of a run, and what the run took."""

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
    """The agent's output for the history; None writes the answers, handoffs and posts there."""
    usage: Usage = NO_USAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A run that failed."""

    kind: ErrorKind
    error: str
    retry_after: int | None = None
    """Milliseconds that the provider asked to wait."""
    usage: Usage = NO_USAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutput:
    """An agent's text, tags included, and the files that go with it."""

    text: str
    files: tuple[str, ...] = ()
    metadata: str | None = None
    usage: Usage = NO_USAGE
