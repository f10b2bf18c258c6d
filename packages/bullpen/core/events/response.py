"""Events of responses: stored, delivered or failed."""

from __future__ import annotations

from bullpen.core.events.base import Level, MessageEvent, note, written_row


class ResponseReady(MessageEvent):
    """A response was stored for delivery"""

    type = "response_ready"
    says = "wrote a response"
    channel: str
    response: int | None = written_row("its id")


class ResponseEvent(MessageEvent):
    """An event about the delivery of a response."""

    channel: str
    error: str | None


class ResponseOutcome(ResponseEvent):
    """A delivery that ended, or was tried again by a person."""

    response: int | None = note("its id", default=None)
    tries: int | None = note("attempts to deliver it so far", default=None)
    waited: int | None = note("milliseconds since it was ready", default=None)
    parts: int | None = note("parts that were sent", default=None)
    sender_id: str | None = None


class ResponseDelivered(ResponseOutcome):
    """A response was delivered to its channel, or read"""

    type = "response_delivered"
    says = "response on {channel} was delivered"
    quiet = True


class ResponseDead(ResponseOutcome):
    """A response could not be delivered, or expired"""

    type = "response_dead"
    level = Level.FAILURE
    says = "response on {channel} was not delivered"


class ResponseUnconfirmed(ResponseOutcome):
    """A part of a response was sent without a confirmation; the channel client looks it up"""

    type = "response_unconfirmed"
    level = Level.NOTICE
    says = "response on {channel} is not confirmed yet"
    quiet = True


class ResponseSettled(ResponseEvent):
    """An unconfirmed part of a response was looked up; the delivery continues"""

    type = "response_settled"
    level = Level.NOTICE
    says = "response on {channel} was looked up (arrived: {arrived})"
    quiet = True
    arrived: str = note("`yes` or `no`")


class ResponseUnknown(ResponseOutcome):
    """It could not be found out whether a response arrived; a person decides about it"""

    type = "response_unknown"
    level = Level.FAILURE
    says = "response on {channel} may not have arrived"


class ResponseRetried(ResponseOutcome):
    """A person retried a response"""

    type = "response_retried"
    level = Level.NOTICE
    says = "response on {channel} was retried"
    quiet = True
