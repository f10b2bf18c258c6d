"""What happens to an answer on its way to a person."""

from __future__ import annotations

from bullpen.core.events.base import Level, MessageEvent, written_row


class ResponseReady(MessageEvent):
    """an answer waits for its channel"""

    type = "response_ready"
    says = "has an answer"
    channel: str
    response: int | None = written_row("its number")


class ResponseDelivered(MessageEvent):
    """the platform took it, or its reader read it"""

    type = "response_delivered"
    says = "an answer was delivered"
    quiet = True
    channel: str
    error: str | None


class ResponseDead(MessageEvent):
    """it cannot be delivered, or not in time"""

    type = "response_dead"
    level = Level.FAILURE
    says = "an answer did not arrive"
    channel: str
    error: str | None


class ResponseUnknown(MessageEvent):
    """it was sent, and nobody knows whether it arrived"""

    type = "response_unknown"
    level = Level.FAILURE
    says = "nobody knows whether an answer arrived"
    channel: str
    error: str | None


class ResponseRetried(MessageEvent):
    """a person sends it once more"""

    type = "response_retried"
    level = Level.NOTICE
    says = "an answer is sent again"
    quiet = True
    channel: str
    error: str | None
