"""Deliveries: external channel clients lease responses and deliver each one once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from flask import Response
from pydantic import Field

from bullpen.api.context import require_reach, write
from bullpen.api.route import PUBLISH, Routes, as_json
from bullpen.api.schemas import Answer, Done, FilesColumn, JsonColumn, StrictBody
from bullpen.core.clock import SECOND
from bullpen.core.errors import StaleToken
from bullpen.core.message import ReplyTo
from bullpen.core.outbox import delivery
from bullpen.core.outbox.delivery import Delivery
from bullpen.core.outbox.leases import lease_responses
from bullpen.core.outbox.parts import PartReceipt
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import sanitise_text

routes = Routes("deliveries", "Delivery of responses by external channel clients.")

HOUR_SECONDS = 3600
WEEK_SECONDS = 7 * 24 * HOUR_SECONDS
MAX_LEASED = 100
MAX_ERROR_CHARS = 10_000

Token = Annotated[str, Field(max_length=200, description="The delivery's token.")]
ErrorText = Annotated[str, Field(max_length=MAX_ERROR_CHARS)]


class LeaseResponsesBody(StrictBody):
    """A request for responses to deliver."""

    channel: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]
    worker: str = Field("outside", min_length=1, max_length=200, description="The client's name.")
    limit: int = Field(10, ge=1, le=MAX_LEASED, description="Maximum number of responses.")
    lease: int | None = Field(
        None,
        ge=1,
        le=HOUR_SECONDS,
        description="Duration of the lease in seconds; the begin and the end of each part renew "
        "it. By default the setting `delivery_lease_seconds`.",
    )


class ReplyToAnswer(Answer):
    """The reply address on the platform; unknown fields are empty."""

    chat: str = ""
    thread: str = ""
    message: str = ""


class DeliveryAnswer(Answer):
    """A leased response."""

    token: str
    id: int
    message_id: str
    channel: str
    sender: str = Field(description="The recipient's name.")
    sender_id: str | None = Field(description="The recipient's id on the channel.")
    message: str
    original_message: str
    agent: str
    files: FilesColumn
    metadata: JsonColumn
    conversation_id: str
    reply_to: ReplyToAnswer | None
    seq: int
    delivery_attempts: int = Field(description="Number of attempts, including this one.")
    parts_sent: int = Field(description="Number of parts already sent: continue after them.")
    possible_duplicate: bool = Field(
        description="Whether it may have arrived before: tell the recipient."
    )
    expires_at: int


class LeasedAnswer(Answer):
    """The leased responses, oldest first."""

    responses: list[DeliveryAnswer]


class DeliveryTokenBody(StrictBody):
    """Selects a delivery."""

    token: Token


class EndPartBody(DeliveryTokenBody):
    """A part that the platform accepted."""

    receipt: ErrorText = Field("", description="The platform's answer.")


class RescheduleBody(DeliveryTokenBody):
    """A delivery to try again later."""

    error: ErrorText
    retry_after: float | None = Field(
        None,
        ge=0,
        le=WEEK_SECONDS,
        allow_inf_nan=False,
        description="Seconds that the platform asked to wait; without it, the delay grows with "
        "each attempt.",
    )
    counted: bool = Field(
        True, description="Whether it counts as an attempt; false for a rate limit."
    )


class DeliveryErrorBody(DeliveryTokenBody):
    """A delivery that failed, or whose outcome is unknown."""

    error: ErrorText


@routes.post("/api/responses/lease", PUBLISH)
def lease(body: LeaseResponsesBody) -> Annotated[Response, LeasedAnswer]:
    """Lease responses of a channel for delivery.

    For each part of a response call `begin-part`, send the part, and call `end-part`. Call
    `ack-leased` after the last part. A response whose lease ends between `begin-part` and
    `end-part` becomes `unknown` and is not sent again automatically. Requires a key that reaches
    all agents.
    """
    require_reach(None)
    lease = None if body.lease is None else body.lease * SECOND
    with write() as tx:
        leased = lease_responses(tx, body.channel, body.worker, body.limit, lease)
        # Within the transaction: a response that cannot be sent to the client is not leased.
        return as_json(LeasedAnswer(responses=[_delivery_answer(each) for each in leased]))


@routes.post("/api/responses/begin-part", PUBLISH, StaleToken)
def begin_part(body: DeliveryTokenBody) -> Done:
    """Begin a part of a delivery, and renew its lease.

    409 `stale_token`: do not send the part, because another client delivers the response, or a
    person has dropped it.
    """
    return _apply(lambda tx: delivery.begin_part(tx, body.token))


@routes.post("/api/responses/end-part", PUBLISH, StaleToken)
def end_part(body: EndPartBody) -> Done:
    """Record that the platform accepted the part."""
    return _apply(
        lambda tx: delivery.end_part(tx, body.token, PartReceipt(sanitise_text(body.receipt)))
    )


@routes.post("/api/responses/ack-leased", PUBLISH, StaleToken)
def ack_leased(body: DeliveryTokenBody) -> Done:
    """Record that the platform accepted the last part."""
    return _apply(lambda tx: delivery.ack(tx, body.token))


@routes.post("/api/responses/reschedule", PUBLISH, StaleToken)
def reschedule(body: RescheduleBody) -> Done:
    """Try a delivery again later; after the last attempt it is dead."""
    error = sanitise_text(body.error)
    after = None if body.retry_after is None else round(body.retry_after * SECOND)
    return _apply(
        lambda tx: delivery.reschedule(
            tx, body.token, error, retry_after=after, counted=body.counted
        )
    )


@routes.post("/api/responses/undeliverable", PUBLISH, StaleToken)
def undeliverable(body: DeliveryErrorBody) -> Done:
    """Report that the recipient does not exist or refuses the response.

    The response is dead.
    """
    error = sanitise_text(body.error)
    return _apply(lambda tx: delivery.mark_undeliverable(tx, body.token, error))


@routes.post("/api/responses/unknown", PUBLISH, StaleToken)
def unknown(body: DeliveryErrorBody) -> Done:
    """Report that the platform did not confirm the part.

    The response is `unknown`: a person decides whether to send it again.
    """
    error = sanitise_text(body.error)
    return _apply(lambda tx: delivery.mark_unknown(tx, body.token, error, look_up=False))


def _apply(change: Callable[[Transaction], object]) -> Done:
    """Change a leased delivery; requires a key that reaches all agents."""
    require_reach(None)
    with write() as tx:
        change(tx)
    return Done()


def _delivery_answer(delivery: Delivery) -> DeliveryAnswer:
    address = None if delivery.reply_to is None else ReplyTo.parse(delivery.reply_to)
    return DeliveryAnswer.from_row(delivery, token=delivery.claim_token or "", reply_to=address)
