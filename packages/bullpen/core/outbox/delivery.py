"""A response on its way: leased by a channel client, and its deliveries fenced by the token."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields

from sqlalchemy import Column, ColumnElement, bindparam, select, update

from bullpen.core.errors import StaleToken
from bullpen.core.models import RESPONSES
from bullpen.core.models.base import const
from bullpen.core.states import ResponseState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

R = RESPONSES.c

MAX_ID_DIGITS = 18
"""Longer ones fit into no database's integer."""

_TOKEN = re.compile(r"[0-9]{1,18}\.[a-z0-9]{1,64}")


def pending() -> ColumnElement[bool]:
    """Whether a response still waits to be delivered."""
    return R.status == const(ResponseState.PENDING.value)


def fenced() -> tuple[ColumnElement[bool], ...]:
    """Whether this response is still held by this token."""
    return (R.id == bindparam("response"), R.claim_token == bindparam("token"), pending())


@dataclass(frozen=True, slots=True)
class Delivery:
    """A leased response, in the order of its columns."""

    id: int
    message_id: str
    channel: str
    sender: str
    sender_id: str | None
    message: str
    original_message: str
    agent: str
    files: str | None
    metadata: str | None
    conversation_id: str
    reply_to: str | None
    seq: int
    delivery_attempts: int
    parts_sent: int
    possible_duplicate: bool
    expires_at: int
    claim_token: str | None


def columns() -> tuple[Column[object], ...]:
    """The columns of a delivery, in the order of its fields."""
    return tuple(R[field.name] for field in fields(Delivery))


DeliveryTuple = tuple[
    int,
    str,
    str,
    str,
    str | None,
    str,
    str,
    str,
    str | None,
    str | None,
    str,
    str | None,
    int,
    int,
    int,
    bool,
    int,
    str | None,
]

LOCK_DELIVERY: Statement[DeliveryTuple] = Statement(
    lambda: select(*columns()).where(*fenced()).with_for_update()
)

RENEW_LEASE: Statement[None] = Statement(
    lambda: (
        update(RESPONSES)
        .where(*fenced())
        .values(
            sending=bindparam("is_sending"),
            parts_sent=R.parts_sent + bindparam("parts"),
            part_receipts=bindparam("receipts"),
            available_at=bindparam("until"),
            lease_expires_at=bindparam("until"),
        )
    )
)


def response_of_token(token: str) -> int:
    """The response that this token leases; 0, which is none, for what is not a token."""
    head = token.partition(".")[0]
    return int(head) if head.isdecimal() and len(head) <= MAX_ID_DIGITS else 0


def lock_delivery(tx: Transaction, token: str) -> Delivery:
    """The response that this token leases, locked; everything that a client does starts here."""
    if not _TOKEN.fullmatch(token):
        raise StaleToken(f"{token[:60]!r} is not a delivery")
    row = tx.one(LOCK_DELIVERY, {"response": response_of_token(token), "token": token})
    if row is None:
        raise StaleToken(f"the delivery {token} is not yours any more")
    return Delivery(*row)
