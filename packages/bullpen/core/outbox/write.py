"""Create responses: answers to messages, and proactive ones."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import bindparam, false, insert

from bullpen.core.access.outgoing import outgoing_mask
from bullpen.core.clock import HOUR
from bullpen.core.errors import BadText
from bullpen.core.events.append import append_event
from bullpen.core.events.base import MessageRef
from bullpen.core.events.response import ResponseReady
from bullpen.core.file_records import message_place, record_uses
from bullpen.core.history import INSERT_HISTORY
from bullpen.core.message import Answer, Message, reply_place
from bullpen.core.models import RESPONSES
from bullpen.core.models.base import const, encode_list
from bullpen.core.outbox.addresses import owner_address
from bullpen.core.states import ResponseState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.strict_json import check_json_column
from bullpen.core.text import check_text

OWNER_SENDER = "owner"
"""The sender's name on responses to the owner."""

_INSERTED_COLUMNS = (
    *("message_id", "channel", "sender", "sender_id", "message", "original_message", "agent"),
    *("files", "metadata", "conversation_id", "reply_to", "seq", "expires_at"),
)

INSERT_RESPONSE: Statement[None] = Statement(
    lambda: insert(RESPONSES).values(
        {
            **{name: bindparam(name) for name in _INSERTED_COLUMNS},
            "status": const(ResponseState.PENDING.value),
            "delivery_attempts": const(0),
            "parts_sent": const(0),
            "sending": false(),
            "possible_duplicate": false(),
            "available_at": bindparam("now"),
            "created_at": bindparam("now"),
        }
    )
)


def add_response(tx: Transaction, to: Message, answer: Answer, seq: int = 0) -> None:
    """Answer this message on its channel, at its reply address."""
    if answer.files:
        record_uses(tx, answer.files, to.conversation_id, to.agent, message_place(to))
    _insert_response(
        tx,
        answer,
        message_id=to.message_id,
        channel=to.channel,
        sender=to.sender,
        sender_id=to.sender_id,
        original_message=to.message,
        agent=to.agent,
        conversation_id=to.conversation_id,
        reply_to=to.reply_to,
        seq=seq,
    )
    append_event(tx, ResponseReady(to, channel=to.channel))


def send_to_owner(tx: Transaction, text: str) -> str:
    """Send a text to the owner's address in the settings; returns its `message_id`."""
    owner = owner_address(tx.settings)
    return send_to_person(
        tx,
        Answer(message=text),
        channel=owner.channel,
        sender=OWNER_SENDER,
        sender_id=owner.sender_id,
    )


def send_to_person(
    tx: Transaction,
    answer: Answer,
    *,
    channel: str,
    sender: str,
    sender_id: str | None = None,
    agent: str = "",
    message_id: str | None = None,
    reply_to: str | None = None,
) -> str:
    """Send a response that answers no stored message; returns its `message_id`.

    The id is new, unless the response answers a refused message with a client's own id.
    """
    limit = tx.settings.message_bytes
    rest = (channel, sender, sender_id or "", agent, answer.metadata or "", *answer.files)
    for text in (answer.message, *rest):
        check_text(text, limit)
    if answer.metadata is not None:
        check_json_column(answer.metadata, "the metadata")
    mask = outgoing_mask(tx)
    metadata = None if answer.metadata is None else mask(answer.metadata)
    answer = replace(answer, message=mask(answer.message), metadata=metadata)
    if not answer.message and not answer.files:
        raise BadText("the message is empty", hint="Send a text or a file.")
    message_id = message_id or tx.ids.new("proactive")
    if answer.files:
        place = reply_place(channel, sender, sender_id, None)
        record_uses(tx, answer.files, message_id, agent, place)
    _insert_response(
        tx,
        answer,
        message_id=message_id,
        channel=channel,
        sender=sender,
        sender_id=sender_id,
        original_message="",
        agent=agent,
        conversation_id=message_id,
        reply_to=reply_to,
        seq=0,
    )
    if agent:
        entry = {"agent": agent, "role": "assistant", "channel": channel, "sender": agent}
        entry.update(message_id=message_id, content=answer.message)
        tx.write(INSERT_HISTORY, {**entry, "now": tx.now})
    about = MessageRef(agent or None, message_id, message_id)
    append_event(tx, ResponseReady(about, channel=channel))
    return message_id


def _insert_response(tx: Transaction, answer: Answer, *, channel: str, **more: object) -> None:
    values: dict[str, object] = {
        **more,
        "channel": channel,
        "message": answer.message,
        "files": encode_list(answer.files) if answer.files else None,
        "metadata": answer.metadata,
        "expires_at": tx.now + tx.settings.response_hours * HOUR,
        "now": tx.now,
    }
    tx.write(INSERT_RESPONSE, values)
    tx.wake(f"responses:{channel}")
