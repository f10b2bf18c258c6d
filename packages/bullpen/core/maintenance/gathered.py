"""Sends the aggregates whose conversation is at rest, or has lasted for too long."""

from __future__ import annotations

from bullpen.core.answers.conversation import lock_conversation
from bullpen.core.answers.gather import is_at_rest, list_due_aggregates, send_aggregate
from bullpen.core.events.append import EventType, append_message_event
from bullpen.core.store.base import Store


def send_due_aggregates(store: Store) -> str:
    """Send what is due; a finished run sends its own team's at once, this is for all others."""
    with store.read() as tx:
        due = list_due_aggregates(tx)
    sent = 0
    for conversation in due:
        with store.write() as tx:
            lock_conversation(tx, conversation)
            found = send_aggregate(tx, conversation)
            if found is None:
                continue
            sent += 1
            if is_at_rest(tx, conversation):
                told = {"team": found.to.team_id, "answers": found.answers}
                append_message_event(tx, EventType.TEAM_CHAIN_END, found.to, **told)
    return f"{sent} answers sent"
