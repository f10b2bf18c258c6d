"""New responses: the answer to a message, or a proactive one."""

from __future__ import annotations

import json

from sqlalchemy import bindparam, false, insert

from bullpen.core.clock import HOUR
from bullpen.core.errors import BadText
from bullpen.core.events.append import append_event
from bullpen.core.events.base import MessageRef
from bullpen.core.events.response import ResponseReady
from bullpen.core.history import INSERT_HISTORY
from bullpen.core.message import Answer, Message
from bullpen.core.models import RESPONSES
from bullpen.core.models.base import const
from bullpen.core.states import ResponseState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

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
    """Answer this message, on the channel and to the address that it came from."""
    tx.write(
        INSERT_RESPONSE,
        {
            "message_id": to.message_id,
            "channel": to.channel,
            "sender": to.sender,
            "sender_id": to.sender_id,
            "message": answer.message,
            "original_message": to.message,
            "agent": to.agent,
            "files": json.dumps(answer.files) if answer.files else None,
            "metadata": answer.metadata,
            "conversation_id": to.conversation_id,
            "reply_to": to.reply_to,
            "seq": seq,
            "expires_at": tx.now + tx.settings.response_hours * HOUR,
            "now": tx.now,
        },
    )
    append_event(tx, ResponseReady(to, channel=to.channel))
    tx.wake(f"responses:{to.channel}")


OWNER = "owner"


def send_to_owner(tx: Transaction, text: str) -> str:
    """Tell the owner something, where the settings say; gives the id that the response has."""
    settings = tx.settings
    return send_to_person(
        tx,
        Answer(message=text),
        channel=settings.owner_channel,
        sender=OWNER,
        sender_id=settings.owner_id or None,
    )


def send_to_person(
    tx: Transaction,
    answer: Answer,
    *,
    channel: str,
    sender: str,
    sender_id: str | None = None,
    agent: str = "",
) -> str:
    """Send this to a person on a channel; gives the id that the response has."""
    limit = tx.settings.message_bytes
    rest = (channel, sender, sender_id or "", agent, answer.metadata or "", *answer.files)
    for text in (answer.message, *rest):
        check_text(text, limit)
    if not answer.message and not answer.files:
        raise BadText("the message is empty", hint="Write something, or give a file.")
    message_id = tx.ids.new("proactive")
    tx.write(
        INSERT_RESPONSE,
        {
            "message_id": message_id,
            "channel": channel,
            "sender": sender,
            "sender_id": sender_id,
            "message": answer.message,
            "original_message": "",
            "agent": agent,
            "files": json.dumps(answer.files) if answer.files else None,
            "metadata": answer.metadata,
            "conversation_id": message_id,
            "reply_to": None,
            "seq": 0,
            "expires_at": tx.now + tx.settings.response_hours * HOUR,
            "now": tx.now,
        },
    )
    if agent:
        said = {"agent": agent, "role": "assistant", "channel": channel, "sender": agent}
        said.update(message_id=message_id, content=answer.message)
        tx.write(INSERT_HISTORY, {**said, "now": tx.now})
    about = MessageRef(agent or None, message_id, message_id)
    append_event(tx, ResponseReady(about, channel=channel))
    tx.wake(f"responses:{channel}")
    return message_id
