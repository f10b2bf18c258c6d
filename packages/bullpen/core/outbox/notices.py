"""Notices about a conversation to the person who began it, and to the owner."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import bindparam, select

from bullpen.core.history import insert_post, record_notice
from bullpen.core.ids import SYSTEM_AUTHOR
from bullpen.core.message import INTERNAL_CHANNELS, Answer, Message
from bullpen.core.models.archive import MESSAGE_TABLES, live_and_archived
from bullpen.core.outbox.addresses import owner_address
from bullpen.core.outbox.write import OWNER_SENDER, add_response
from bullpen.core.store.statement import Statement, columns
from bullpen.core.store.transaction import Transaction

# A conversation may continue after its first message was archived.
SELECT_MESSAGE: Statement[Message] = Statement(
    lambda: live_and_archived(
        MESSAGE_TABLES,
        lambda table: select(*columns(Message, table)).where(
            table.c.message_id == bindparam("message_id")
        ),
    ),
    Message,
)


def find_person_message(tx: Transaction, message_id: str) -> Message | None:
    """The message of this id, archived or not, if its channel reaches a person."""
    message = tx.one(SELECT_MESSAGE, {"message_id": message_id})
    return None if message is None or message.channel in INTERNAL_CHANNELS else message


def notify_person(tx: Transaction, to: Message, text: str) -> None:
    """Send a notice to the author of this message, and write it into the agent's history."""
    add_response(tx, to, Answer(message=text))
    record_notice(tx, to.agent, to.channel, to.message_id, text)


def notify_all(tx: Transaction, about: Message, text: str) -> None:
    """Send a notice to the conversation's person or room, and to the owner, each once."""
    person = _find_asking_message(tx, about)
    if person is not None:
        notify_person(tx, replace(person, agent=about.agent), text)
    elif about.team_id is not None:
        insert_post(tx, about.team_id, SYSTEM_AUTHOR, text)
    if person is None or not _is_owner(tx, person):
        notify_owner(tx, about, text)


def notify_owner(tx: Transaction, about: Message, text: str) -> None:
    """Send a notice to the owner, on the channel in the settings."""
    owner = owner_address(tx.settings)
    to_owner = replace(
        about, channel=owner.channel, sender=OWNER_SENDER, sender_id=owner.sender_id, reply_to=None
    )
    add_response(tx, to_owner, Answer(message=text))


def _find_asking_message(tx: Transaction, message: Message) -> Message | None:
    """The message whose reply address reaches the conversation's person."""
    if message.channel not in INTERNAL_CHANNELS:
        return message
    return find_person_message(tx, message.conversation_id)


def _is_owner(tx: Transaction, person: Message) -> bool:
    owner = owner_address(tx.settings)
    return person.channel == owner.channel and (person.sender_id or None) == owner.sender_id
