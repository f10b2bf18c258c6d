"""Sends the aggregates whose conversation is at rest, or has lasted for too long."""

from __future__ import annotations

from bullpen.core.answers.gather import due_conversations, send_gathered
from bullpen.core.store.base import Store


def gathered(store: Store) -> str:
    """Send what is due; a finished run sends its own team's at once, this is for all others."""
    with store.read() as tx:
        due = due_conversations(tx)
    sent = 0
    for conversation in due:
        with store.write() as tx:
            sent += send_gathered(tx, conversation)
    return f"{sent} answers sent"
