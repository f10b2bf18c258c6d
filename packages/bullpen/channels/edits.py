"""Edits: a person changes or deletes a message that was taken in before.

A message that waits is changed or cancelled. If a run is already at work on it, the setting `edits`
decides: `ask` offers to run the new text, `rerun` runs it, `ignore` does nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from sqlalchemy import bindparam, select

from bullpen.channels.inbound import Deleted, Edited, Source
from bullpen.core.errors import UnknownResponse
from bullpen.core.intake import submit
from bullpen.core.message import NewMessage, ReplyTo
from bullpen.core.models import MESSAGES, RESPONSES
from bullpen.core.queue.enqueue import PlatformEvent, find_receipts
from bullpen.core.queue.manage import cancel, revise
from bullpen.core.roster.agents import load_address_book
from bullpen.core.routing.address import route_text
from bullpen.core.states import WAITING_STATES, MessageState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

RERUN = "rerun"
M, R = MESSAGES.c, RESPONSES.c

SELECT_MESSAGE: Statement[tuple[str, str | None, str]] = Statement(
    lambda: select(M.status, M.sender_id, M.agent).where(M.message_id == bindparam("message_id"))
)

SELECT_OFFER: Statement[tuple[str | None, str | None]] = Statement(
    lambda: select(R.sender_id, R.metadata).where(R.message_id == bindparam("message_id"))
)


@dataclass(frozen=True, slots=True)
class Offer:
    """A reply to an edit, with the new text to run if the person wants that."""

    text: str
    edited: str = ""


def apply_edit(tx: Transaction, channel: str, edit: Edited, policy: str) -> Offer | None:
    """Change a message that waits; otherwise follow the policy."""
    found = _find(tx, channel, edit)
    if found is None:
        return None
    message_id, state, agent = found
    if state in WAITING_STATES:
        parts = route_text(edit.text, load_address_book(tx), agent)
        if len(parts) == 1 and parts[0].agent == agent and parts[0].text:
            revise(tx, message_id, parts[0].text)
            return None
        cancel(tx, message_id, "its author addressed it to another agent")
        run_text(tx, channel, edit.source, edit.text)
        return None
    if state is not MessageState.PROCESSING or policy == "ignore":
        return None
    if policy == RERUN:
        run_text(tx, channel, edit.source, edit.text)
        return None
    return Offer(
        f"@{agent} is already working on the text before your edit. "
        "Send /stop to cancel the run, or let the new text run after it.",
        edited=edit.text,
    )


def withdraw(tx: Transaction, channel: str, deleted: Deleted) -> None:
    """Cancel a deleted message that waits. A run that has begun continues; /stop cancels it."""
    found = _find(tx, channel, deleted)
    if found is not None and found[1] in WAITING_STATES:
        cancel(tx, found[0], "deleted by its author")


def accept_offer(tx: Transaction, channel: str, offer: str, source: Source) -> str:
    """Run the edited text of an offer; only its author may."""
    row = tx.one(SELECT_OFFER, {"message_id": offer})
    metadata: object = json.loads(row[1]) if row is not None and row[1] else None
    edited = metadata.get("edited") if isinstance(metadata, dict) else None
    if row is None or row[0] != source.person.id or not isinstance(edited, str):
        raise UnknownResponse("there is no edit of yours to run")
    run_text(tx, channel, source, edited, key=f"offer:{offer}")
    return "Added the edited text to the queue."


def run_text(tx: Transaction, channel: str, source: Source, text: str, key: str = "") -> None:
    """Enqueue a text of this person in this place."""
    submit(
        tx,
        NewMessage(
            agent="",
            message=text,
            channel=channel,
            sender=source.person.name or source.person.id,
            sender_id=source.person.id,
            event_ids=(key,) if key else (),
            reply_to=ReplyTo(source.chat.id, source.thread, source.message),
            written_at=source.at,
        ),
    )


def _find(
    tx: Transaction, channel: str, change: Edited | Deleted
) -> tuple[str, MessageState, str] | None:
    """The message of a change, if its author is the author of the change."""
    events = [PlatformEvent(channel, each) for each in change.original]
    message_id = next(iter(find_receipts(tx, events).values()), None)
    row = None if message_id is None else tx.one(SELECT_MESSAGE, {"message_id": message_id})
    if row is None or message_id is None or row[1] != change.source.person.id:
        return None
    return message_id, MessageState(row[0]), row[2]
