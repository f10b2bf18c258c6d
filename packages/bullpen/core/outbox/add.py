"""Writes a response: an answer, or word that there will be none."""

from __future__ import annotations

import json

from sqlalchemy import bindparam, false, insert

from bullpen.core.clock import HOUR
from bullpen.core.events.append import EventType, append_message_event
from bullpen.core.message import Message
from bullpen.core.models import RESPONSES
from bullpen.core.models.base import const
from bullpen.core.outcome import Answer
from bullpen.core.states import ResponseState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

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
    append_message_event(
        tx,
        EventType.RESPONSE_READY,
        to,
        channel=to.channel,
    )
    tx.wake(f"responses:{to.channel}")
