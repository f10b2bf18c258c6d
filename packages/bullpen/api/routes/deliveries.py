"""Deliveries: how channel clients outside of Bullpen send answers, and none goes out twice."""

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
from bullpen.core.outbox.delivery import Delivery, lease_responses
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import sanitise_text

routes = Routes("deliveries", "Answers on their way out, by channel clients outside of Bullpen.")

HOUR_SECONDS = 3600
WEEK_SECONDS = 7 * 24 * HOUR_SECONDS
MAX_LEASED = 100
MAX_ERROR_CHARS = 10_000

Token = Annotated[str, Field(max_length=200, description="the delivery's token")]
ErrorText = Annotated[str, Field(max_length=MAX_ERROR_CHARS)]


class LeaseResponsesBody(StrictBody):
    """What is to be delivered, and by whom."""

    channel: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]
    worker: str = Field("outside", min_length=1, max_length=200, description="who delivers it")
    limit: int = Field(10, ge=1, le=MAX_LEASED, description="how many at the most")
    lease: int | None = Field(
        None,
        ge=1,
        le=HOUR_SECONDS,
        description="seconds until they are another one's, unless a part is begun or ended "
        "meanwhile; the setting `delivery_lease_seconds` by default",
    )


class ReplyToAnswer(Answer):
    """Where on the platform it goes; what is empty is not known."""

    chat: str = ""
    thread: str = ""
    message: str = ""


class DeliveryAnswer(Answer):
    """An answer that is yours to send."""

    token: str
    id: int
    message_id: str
    channel: str
    sender: str = Field(description="to whom, by name")
    sender_id: str | None = Field(description="to whom, by the channel's own id")
    message: str
    original_message: str
    agent: str
    files: FilesColumn
    metadata: JsonColumn
    conversation_id: str
    reply_to: ReplyToAnswer | None
    seq: int
    delivery_attempts: int = Field(description="this one included")
    parts_sent: int = Field(description="so many parts went out before: go on after them")
    possible_duplicate: bool = Field(description="say so: it may have arrived before")
    expires_at: int


class LeasedAnswer(Answer):
    """What is yours to send, the oldest first."""

    responses: list[DeliveryAnswer]


class DeliveryTokenBody(StrictBody):
    """Which delivery."""

    token: Token


class EndPartBody(DeliveryTokenBody):
    """The platform took a part."""

    receipt: ErrorText = Field("", description="what it answered")


class RescheduleBody(DeliveryTokenBody):
    """It could not be sent now."""

    error: ErrorText
    retry_after: float | None = Field(
        None,
        ge=0,
        le=WEEK_SECONDS,
        allow_inf_nan=False,
        description="seconds that the platform asked to wait; else it is longer with every try",
    )
    counted: bool = Field(True, description="false for a rate limit, which is nobody's fault")


class DeliveryErrorBody(DeliveryTokenBody):
    """It did not arrive, or nobody knows."""

    error: ErrorText


@routes.post("/api/responses/lease", PUBLISH)
def lease(body: LeaseResponsesBody) -> Annotated[Response, LeasedAnswer]:
    """Take answers of a channel to deliver them.

    Then, for each part of one: `begin-part`, send it, `end-part`; and `ack-leased` after the last.
    One that is abandoned while a part is on its way becomes `unknown`, and is not sent again by
    itself. For keys that reach all agents.
    """
    require_reach(None)
    lease = None if body.lease is None else body.lease * SECOND
    with write() as tx:
        leased = lease_responses(tx, body.channel, body.worker, body.limit, lease)
        # Within the transaction: an answer that the client cannot be given is not leased.
        return as_json(LeasedAnswer(responses=[_delivery_answer(each) for each in leased]))


@routes.post("/api/responses/begin-part", PUBLISH, StaleToken)
def begin_part(body: DeliveryTokenBody) -> Done:
    """Say that a part is about to be sent; it renews the lease as well.

    409 `stale_token`: do not send it, another one does, or a person has set it aside.
    """
    return _apply(lambda tx: delivery.begin_part(tx, body.token))


@routes.post("/api/responses/end-part", PUBLISH, StaleToken)
def end_part(body: EndPartBody) -> Done:
    """Say that the platform took the part."""
    return _apply(lambda tx: delivery.end_part(tx, body.token, sanitise_text(body.receipt)))


@routes.post("/api/responses/ack-leased", PUBLISH, StaleToken)
def ack_leased(body: DeliveryTokenBody) -> Done:
    """Say that the platform took the last part."""
    return _apply(lambda tx: delivery.ack(tx, body.token))


@routes.post("/api/responses/reschedule", PUBLISH, StaleToken)
def reschedule(body: RescheduleBody) -> Done:
    """Say that it could not be sent now; after the last counted try it is dead."""
    error = sanitise_text(body.error)
    after = None if body.retry_after is None else round(body.retry_after * SECOND)
    return _apply(
        lambda tx: delivery.reschedule(
            tx, body.token, error, retry_after=after, counted=body.counted
        )
    )


@routes.post("/api/responses/undeliverable", PUBLISH, StaleToken)
def undeliverable(body: DeliveryErrorBody) -> Done:
    """Say that it can never be sent: the recipient does not exist, or will not have it."""
    error = sanitise_text(body.error)
    return _apply(lambda tx: delivery.mark_undeliverable(tx, body.token, error))


@routes.post("/api/responses/unknown", PUBLISH, StaleToken)
def unknown(body: DeliveryErrorBody) -> Done:
    """Say that it was sent and no answer came: a person decides whether it goes out again."""
    error = sanitise_text(body.error)
    return _apply(lambda tx: delivery.mark_unknown(tx, body.token, error))


def _apply(change: Callable[[Transaction], object]) -> Done:
    """Change a delivery that this client has leased; only keys that reach all agents may."""
    require_reach(None)
    with write() as tx:
        change(tx)
    return Done()


def _delivery_answer(delivery: Delivery) -> DeliveryAnswer:
    address = None if delivery.reply_to is None else ReplyTo.parse(delivery.reply_to)
    return DeliveryAnswer.from_row(delivery, token=delivery.claim_token or "", reply_to=address)
