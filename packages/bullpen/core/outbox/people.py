"""Who hears of a conversation: the person that began it, and the owner."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import bindparam, select

from bullpen.core.message import INTERNAL, ROOM, Message
from bullpen.core.models import MESSAGES
from bullpen.core.outbox.add import add_response
from bullpen.core.outcome import Answer
from bullpen.core.queue.columns import MESSAGE_COLUMNS, MessageTuple
from bullpen.core.queue.room import keep_post
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

OWNER = "owner"

FIRST: Statement[MessageTuple] = Statement(
    select(*MESSAGE_COLUMNS).where(MESSAGES.c.message_id == bindparam("conversation"))
)


def first_message(tx: Transaction, conversation_id: str) -> Message | None:
    """The message that began a conversation, if it is still there."""
    row = tx.one(FIRST, {"conversation": conversation_id})
    return None if row is None else Message(*row)


def asked_by_person(tx: Transaction, message: Message) -> Message | None:
    """The message by whose address the conversation's person is reached."""
    if message.channel not in (ROOM, INTERNAL):
        return message
    first = first_message(tx, message.conversation_id)
    return None if first is None or first.channel in (ROOM, INTERNAL) else first


def tell_all(tx: Transaction, about: Message, text: str) -> None:
    """Tell the conversation's person, or its room, and the owner, each once."""
    person = asked_by_person(tx, about)
    if person is not None:
        add_response(tx, replace(person, agent=about.agent), Answer(message=text))
    elif about.team_id is not None:
        keep_post(tx, about.team_id, "bullpen", text)
    if person is None or not _is_owner(tx, person):
        tell_owner(tx, about, text)


def tell_owner(tx: Transaction, about: Message, text: str) -> None:
    """Tell the owner, on the channel that the settings name."""
    settings = tx.settings
    address = replace(
        about,
        channel=settings.owner_channel,
        sender=OWNER,
        sender_id=settings.owner_id or None,
        reply_to=None,
    )
    add_response(tx, address, Answer(message=text))


def _is_owner(tx: Transaction, person: Message) -> bool:
    settings = tx.settings
    return person.channel == settings.owner_channel and (
        (person.sender_id or "") == settings.owner_id
    )
