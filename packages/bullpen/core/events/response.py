"""Events of responses: stored, delivered or failed."""

from __future__ import annotations

from bullpen.core.events.base import Level, MessageEvent, written_row


class ResponseReady(MessageEvent):
    """A response was stored for delivery"""

    type = "response_ready"
    says = "wrote a response"
    channel: str
    response: int | None = written_row("its id")


class ResponseDelivered(MessageEvent):
    """A response was delivered to its channel, or read"""

    type = "response_delivered"
    says = "response on {channel} was delivered"
    quiet = True
    channel: str
    error: str | None


class ResponseDead(MessageEvent):
    """A response could not be delivered, or expired"""

    type = "response_dead"
    level = Level.FAILURE
    says = "response on {channel} was not delivered"
    channel: str
    error: str | None


class ResponseUnknown(MessageEvent):
    """A response was sent without a confirmation; it may have arrived"""

    type = "response_unknown"
    level = Level.FAILURE
    says = "response on {channel} may not have arrived"
    channel: str
    error: str | None


class ResponseRetried(MessageEvent):
    """A person retried a response"""

    type = "response_retried"
    level = Level.NOTICE
    says = "response on {channel} was retried"
    quiet = True
    channel: str
    error: str | None
