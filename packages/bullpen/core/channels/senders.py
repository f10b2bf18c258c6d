"""Senders: the people on a channel, and what each of them may do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import ColumnElement, bindparam, delete, null, select, true, update

from bullpen.core.events.append import append_event
from bullpen.core.events.channel import PairingApproved, PairingRevoked, SenderBlocked
from bullpen.core.message import Answer, ReplyTo
from bullpen.core.models import CHATS, SENDERS
from bullpen.core.models.base import const, insert_if_absent
from bullpen.core.outbox.write import send_to_person
from bullpen.core.settings import Settings
from bullpen.core.store.statement import Statement, columns
from bullpen.core.store.transaction import DeferredRow, Transaction
from bullpen.core.text import check_text, visible_line

C, S = CHATS.c, SENDERS.c

PAIRED_TEXT = "You are now paired with Bullpen. Send a message to begin."

MAX_NAME_CHARS = 200


class Tier(StrEnum):
    """What a person on a channel may do. An unpaired person has no tier."""

    OWNER = "owner"
    MEMBER = "member"
    GUEST = "guest"
    BLOCKED = "blocked"


@dataclass(frozen=True, slots=True)
class Sender:
    """A person on a channel."""

    channel: str
    sender_id: str
    name: str
    tier: Tier | None
    """None until the pairing is approved."""
    code: str | None
    code_expires_at: int | None
    told_at: int | None
    asked_in: str | None
    """Where the reply with a code went, until the pairing is approved."""
    approved_at: int | None
    approved_by: str | None
    first_at: int
    last_at: int


def here() -> tuple[ColumnElement[bool], ...]:
    """Whether a row is that of one person on one channel."""
    return (S.channel == bindparam("account"), S.sender_id == bindparam("id"))


SELECT_SENDER: Statement[Sender] = Statement(
    lambda: select(*columns(Sender, SENDERS)).where(*here()), Sender
)

LOCK_SENDER: Statement[Sender] = Statement(
    lambda: select(*columns(Sender, SENDERS)).where(*here()).with_for_update(), Sender
)

SELECT_SENDERS: Statement[Sender] = Statement(
    lambda: (
        select(*columns(Sender, SENDERS))
        .where(S.channel == bindparam("account"), S.sender_id > bindparam("after"))
        .order_by(S.sender_id)
        .limit(bindparam("limit"))
    ),
    Sender,
)

_NEW = ("channel", "sender_id", "name", "first_at", "last_at")

INSERT_SENDER: Statement[None] = Statement(lambda: insert_if_absent(SENDERS, _NEW))

UPDATE_SEEN: Statement[None] = Statement(
    lambda: (
        update(SENDERS).where(*here()).values(name=bindparam("new_name"), last_at=bindparam("now"))
    )
)

UPDATE_TIER: Statement[None] = Statement(
    lambda: (
        update(SENDERS)
        .where(*here())
        .values(
            tier=bindparam("value"),
            code=null(),
            code_expires_at=null(),
            asked_in=null(),
            approved_at=bindparam("now"),
            approved_by=bindparam("by"),
        )
    )
)

# Without an index, but only for a person who is approved without a code.
SELECT_DIRECT_CHAT: Statement[tuple[str]] = Statement(
    lambda: (
        select(C.chat)
        .where(C.channel == bindparam("account"), C.person == bindparam("id"), C.direct == true())
        .limit(const(1))
    )
)

DELETE_SENDER: Statement[None] = Statement(lambda: delete(SENDERS).where(*here()))


def is_owner(settings: Settings, channel: str, sender_id: str) -> bool:
    """Whether this is the owner of the settings, who needs no row."""
    owner = (settings.owner_channel, settings.owner_id)
    return bool(settings.owner_id) and owner == (channel, sender_id)


def find_sender(tx: Transaction, channel: str, sender_id: str) -> Sender | None:
    """The person of this id, if there is a row."""
    return tx.one(SELECT_SENDER, {"account": channel, "id": sender_id})


def ask_for_sender(tx: Transaction, channel: str, sender_id: str) -> DeferredRow[Sender]:
    """The same, but the row is read later."""
    return tx.one_deferred(SELECT_SENDER, {"account": channel, "id": sender_id})


def find_tier(tx: Transaction, channel: str, sender_id: str) -> Tier | None:
    """What this person may do; None if they are unpaired. The owner of the settings has no row."""
    return tier_of(tx.settings, channel, sender_id, find_sender(tx, channel, sender_id))


def tier_of(settings: Settings, channel: str, sender_id: str, sender: Sender | None) -> Tier | None:
    """What a person may do whose row was read."""
    if is_owner(settings, channel, sender_id):
        return Tier.OWNER
    return None if sender is None else sender.tier


def see_sender(
    tx: Transaction, channel: str, sender_id: str, name: str, *, is_known: bool = False
) -> None:
    """Record the name of a person, and when they wrote last; creates the row of a new person.

    If the row was read before in this transaction (`is_known`), nothing waits for the result.
    """
    values = {"account": channel, "id": sender_id, "new_name": check_name(tx, name), "now": tx.now}
    if is_known:
        tx.write(UPDATE_SEEN, values)
    elif tx.change(UPDATE_SEEN, values) == 0:
        add_sender(tx, channel, sender_id, name)


def add_sender(tx: Transaction, channel: str, sender_id: str, name: str) -> None:
    """Create the row of a person, unless there is one."""
    check_text(f"{channel}{sender_id}", tx.settings.message_bytes, "the id of the sender")
    new = {"channel": channel, "sender_id": sender_id, "name": check_name(tx, name)}
    tx.write(INSERT_SENDER, {**new, "first_at": tx.now, "last_at": tx.now})


def set_tier(
    tx: Transaction, channel: str, sender_id: str, tier: Tier, by: str, name: str = ""
) -> Sender:
    """Give a person a tier, with or without a pairing before; returns the person.

    A person who was unpaired gets a message in the chat in which they asked.
    """
    add_sender(tx, channel, sender_id, name)
    before = tx.one(LOCK_SENDER, {"account": channel, "id": sender_id})
    assert before is not None
    change = {"account": channel, "id": sender_id, "value": tier.value, "by": by, "now": tx.now}
    tx.write(UPDATE_TIER, change)
    if before.tier is not tier:
        shown = before.name or sender_id
        if tier is Tier.BLOCKED:
            blocked = SenderBlocked(channel=channel, name=shown, sender_id=sender_id, by=by)
            append_event(tx, blocked)
        else:
            approved = PairingApproved(
                channel=channel, name=shown, tier=tier.value, sender_id=sender_id, chat=None, by=by
            )
            append_event(tx, approved)
            if before.tier is None:
                _welcome(tx, before)
    after = find_sender(tx, channel, sender_id)
    assert after is not None
    return after


def block(tx: Transaction, channel: str, sender_id: str, by: str, name: str = "") -> Sender:
    """Ignore everything that this person writes; returns the person."""
    return set_tier(tx, channel, sender_id, Tier.BLOCKED, by, name)


def revoke(tx: Transaction, channel: str, sender_id: str, by: str) -> bool:
    """Make a person unpaired; False if there is no row. They may ask for pairing again."""
    sender = tx.one(LOCK_SENDER, {"account": channel, "id": sender_id})
    if sender is None:
        return False
    tx.write(DELETE_SENDER, {"account": channel, "id": sender_id})
    if sender.tier is not None:
        name = sender.name or sender_id
        event = PairingRevoked(channel=channel, name=name, sender_id=sender_id, chat=None, by=by)
        append_event(tx, event)
    return True


def list_senders(tx: Transaction, channel: str, after: str = "", limit: int = 1000) -> list[Sender]:
    """The people of a channel after an id, in the order of their ids."""
    return tx.all(SELECT_SENDERS, {"account": channel, "after": after, "limit": limit})


def _welcome(tx: Transaction, sender: Sender) -> None:
    """Send a person a message that they are paired, if a chat is known."""
    place = sender.asked_in
    if place is None:
        row = tx.one(SELECT_DIRECT_CHAT, {"account": sender.channel, "id": sender.sender_id})
        if row is None:
            return
        place = str(ReplyTo(row[0]))
    send_to_person(
        tx,
        Answer(message=PAIRED_TEXT),
        channel=sender.channel,
        sender=sender.name or sender.sender_id,
        sender_id=sender.sender_id,
        reply_to=place,
    )


def check_name(tx: Transaction, name: str) -> str:
    """The name in one line, without control characters."""
    checked = check_text(name, tx.settings.message_bytes, "the sender")
    return visible_line(checked)[:MAX_NAME_CHARS]
