"""A response that answers nothing: an agent writes to a person of its own accord."""

from __future__ import annotations

import json

from bullpen.core.clock import HOUR
from bullpen.core.errors import BadText
from bullpen.core.events.append import EventType, append_event
from bullpen.core.history.say import INSERT_HISTORY
from bullpen.core.outbox.add import INSERT_RESPONSE
from bullpen.core.outcome import Answer
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

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
    append_event(
        tx,
        EventType.RESPONSE_READY,
        agent=agent or None,
        conversation_id=message_id,
        message_id=message_id,
        channel=channel,
    )
    tx.wake(f"responses:{channel}")
    return message_id
