"""What becomes of a message that is not answered at once."""

from __future__ import annotations

from bullpen.core.events.base import Level, MessageEvent, note


class MessageFailed(MessageEvent):
    """a run failed, and the message waits again"""

    type = "message_failed"
    level = Level.FAILURE
    says = "failed"
    kind: str
    error: str
    wait: int = note("milliseconds")


class MessageRetried(MessageEvent):
    """a person tries a dead message again"""

    type = "message_retried"
    level = Level.NOTICE
    says = "a message is tried again"


class MessageReleased(MessageEvent):
    """a run was given up, and nothing is counted"""

    type = "message_released"
    says = "gave its work back to the queue"
    messages: list[str] = note("ids")
    reason: str


class MessageDead(MessageEvent):
    """a message will not be tried again by itself"""

    type = "message_dead"
    level = Level.FAILURE
    says = "gave up"
    kind: str
    error: str


class MessageHeld(MessageEvent):
    """it waits for a person"""

    type = "message_held"
    level = Level.WARNING
    says = "waits for a person"
    reason: str | None = None
    kind: str | None = None
    error: str | None = None
    wait: int | None = None


class MessageResumed(MessageEvent):
    """a person let it go on"""

    type = "message_let_go"
    says = "a held message goes on"


class MessageCancelled(MessageEvent):
    """a person ended it"""

    type = "message_cancelled"
    says = "a message was cancelled"
    reason: str


class MessageExpired(MessageEvent):
    """its deadline passed before its turn came"""

    type = "message_expired"
    level = Level.WARNING
    says = "was too late with a message"


class MessageDropped(MessageEvent):
    """a person deleted it"""

    type = "message_dropped"
    says = "a message was dropped"
