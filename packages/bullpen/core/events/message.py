"""Events of messages that failed, or that a person cancelled, held or retried."""

from __future__ import annotations

from bullpen.core.events.base import Level, MessageEvent, note


class MessageFailed(MessageEvent):
    """A run failed; the message is pending again"""

    type = "message_failed"
    level = Level.FAILURE
    says = "failed to answer {message}"
    kind: str
    error: str
    wait: int = note("milliseconds")


class MessageRetried(MessageEvent):
    """A person retried a message"""

    type = "message_retried"
    level = Level.NOTICE
    says = "message {message} was retried"


class MessageReleased(MessageEvent):
    """A run ended early; its messages are pending again and no attempt is counted"""

    type = "message_released"
    says = "message {message} was released"
    messages: list[str] = note("ids")
    reason: str


class MessageDead(MessageEvent):
    """A message became a dead letter; it is not retried automatically"""

    type = "message_dead"
    level = Level.FAILURE
    says = "message {message} is dead"
    kind: str
    error: str
    channel: str | None = None
    team_id: str | None = None
    sender_id: str | None = None
    fingerprint: str | None = note(
        "equal for errors that differ only in numbers and ids", default=None
    )


class MessageHeld(MessageEvent):
    """A message was held until a person resumes or cancels it"""

    type = "message_held"
    level = Level.WARNING
    says = "message {message} is held"
    reason: str | None = None
    kind: str | None = None
    error: str | None = None
    wait: int | None = None


class MessageResumed(MessageEvent):
    """A person resumed a held message"""

    type = "message_let_go"
    says = "message {message} was resumed"


class MessageChanged(MessageEvent):
    """The text or the files of a message changed before its run"""

    type = "message_changed"
    says = "message {message} was changed"


class MessageCancelled(MessageEvent):
    """A message was cancelled"""

    type = "message_cancelled"
    says = "message {message} was cancelled"
    reason: str


class MessageExpired(MessageEvent):
    """A message was still pending at its deadline"""

    type = "message_expired"
    level = Level.WARNING
    says = "message {message} expired"


class MessageDropped(MessageEvent):
    """A person deleted a message"""

    type = "message_dropped"
    says = "message {message} was dropped"
