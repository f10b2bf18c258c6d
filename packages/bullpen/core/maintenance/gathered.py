"""Sends the aggregates whose conversation is at rest, or has lasted for too long."""

from __future__ import annotations

from bullpen.core.answers.conversation import lock_conversation
from bullpen.core.answers.gather import at_rest, due_conversations, send_gathered
from bullpen.core.events.append import EventType, tell
from bullpen.core.store.base import Store


def gathered(store: Store) -> str:
    """Send what is due; a finished run sends its own team's at once, this is for all others."""
    with store.read() as tx:
        due = due_conversations(tx)
    sent = 0
    for conversation in due:
        with store.write() as tx:
            lock_conversation(tx, conversation)
            found = send_gathered(tx, conversation)
            if found is None:
                continue
            sent += 1
            if at_rest(tx, conversation):
                told = {"team": found.to.team_id, "answers": found.answers}
                tell(tx, EventType.TEAM_CHAIN_END, found.to, **told)
    return f"{sent} answers sent"
