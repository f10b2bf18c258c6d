"""Edits: a person changes or deletes a message that was taken in before.

A message that waits is changed or cancelled. If a run is already at work on it, the setting `edits`
decides: `ask` offers to run the new text, `rerun` runs it, `ignore` does nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from sqlalchemy import bindparam, select

from bullpen.channels.inbound import Deleted, Edited, Source
from bullpen.core.errors import BullpenError, NameTaken, StoreError, UnknownResponse
from bullpen.core.intake import MAX_SENDER_CHARS, submit, submit_to
from bullpen.core.message import NewMessage, ReplyTo
from bullpen.core.models import MESSAGES, RESPONSES
from bullpen.core.models.base import decode_texts
from bullpen.core.queue.attach import waits
from bullpen.core.queue.enqueue import PlatformEvent, find_receipts
from bullpen.core.queue.manage import cancel, revise
from bullpen.core.roster.agents import load_address_book
from bullpen.core.routing.address import route_text
from bullpen.core.states import WAITING_STATES, MessageState
from bullpen.core.store.group_commit import savepoint
from bullpen.core.store.statement import Statement, columns
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import visible_line

RERUN = "rerun"
M, R = MESSAGES.c, RESPONSES.c


@dataclass(frozen=True, slots=True)
class Original:
    """The message that a person changes."""

    message_id: str
    conversation_id: str
    status: str
    sender_id: str | None
    agent: str
    files: str | None
    last_error: str | None

    @property
    def state(self) -> MessageState:
        """How far it is."""
        return MessageState(self.status)


SELECT_MESSAGE: Statement[Original] = Statement(
    lambda: select(*columns(Original, MESSAGES)).where(M.message_id == bindparam("message_id")),
    Original,
)

SELECT_OFFER: Statement[tuple[str | None, str | None]] = Statement(
    lambda: select(R.sender_id, R.metadata).where(
        R.message_id == bindparam("message_id"), R.channel == bindparam("channel")
    )
)


@dataclass(frozen=True, slots=True)
class Offer:
    """A reply to an edit, with the new text to run if the person wants that."""

    text: str
    edited: str = ""
    """The new text; empty if there is nothing to run."""
    agent: str = ""


def apply_edit(
    tx: Transaction, channel: str, edit: Edited, policy: str, *, routed: bool
) -> Offer | None:
    """Change a message that waits; otherwise follow the policy. An error is a reply.

    With `routed`, the new text may be addressed to another agent. A guest's never is.
    """
    found = _find(tx, channel, edit)
    if found is None:
        return None
    try:
        with savepoint(tx):
            return _apply(tx, channel, edit, found, policy, routed=routed)
    except StoreError:
        raise
    except BullpenError as error:
        return Offer(f"Your edit was not accepted: {error}. {error.hint or ''}".strip())


def _apply(
    tx: Transaction, channel: str, edit: Edited, found: Original, policy: str, *, routed: bool
) -> Offer | None:
    new = replace(_message(channel, edit.source, edit.text), agent=found.agent)
    if found.state in WAITING_STATES:
        text = _text_for(tx, edit.text, found.agent) if routed else edit.text
        if text is not None:
            revise(tx, found.message_id, text)
        elif waits(tx, found.conversation_id):
            return Offer("The files of your message are being fetched. Edit it again in a moment.")
        else:
            cancel(tx, found.message_id, "its author addressed it to another agent")
            held = found.last_error or "held" if found.state is MessageState.HELD else None
            _run(
                tx,
                replace(new, files=tuple(decode_texts(found.files)), hold_reason=held),
                routed=True,
            )
        return None
    if found.state is not MessageState.PROCESSING or policy == "ignore":
        return None
    if policy == RERUN:
        _run(tx, new, routed=routed)
        return None
    return Offer(
        f"@{found.agent} is already working on the text before your edit. "
        "Send /stop to cancel the run, or let the new text run after it.",
        edited=edit.text,
        agent=found.agent,
    )


def _text_for(tx: Transaction, text: str, agent: str) -> str | None:
    """The text without its address, if it is still for this agent only."""
    if not text.strip():
        return text  # only files are left
    parts = route_text(text, load_address_book(tx), agent)
    return parts[0].text if len(parts) == 1 and parts[0].agent == agent else None


def withdraw(tx: Transaction, channel: str, deleted: Deleted) -> None:
    """Cancel a deleted message that waits. A run that has begun continues; /stop cancels it."""
    found = _find(tx, channel, deleted)
    if found is not None and found.state in WAITING_STATES:
        cancel(tx, found.message_id, "deleted by its author")


def accept_offer(tx: Transaction, channel: str, offer: str, source: Source, *, routed: bool) -> str:
    """Run the edited text of an offer; only its author may."""
    row = tx.one(SELECT_OFFER, {"message_id": offer, "channel": channel})
    metadata: object = json.loads(row[1]) if row is not None and row[1] else None
    values = metadata if isinstance(metadata, dict) else {}
    edited, agent = values.get("edited"), values.get("agent")
    if row is None or row[0] != source.person.id or not isinstance(edited, str):
        raise UnknownResponse("there is no edit of yours to run")
    new = _message(channel, source, edited)
    _run(tx, replace(new, agent=str(agent or ""), event_ids=(f"offer:{offer}",)), routed=routed)
    return "Added the edited text to the queue."


def _message(channel: str, source: Source, text: str) -> NewMessage:
    return NewMessage(
        agent="",
        message=text,
        channel=channel,
        sender=visible_line(source.person.name)[:MAX_SENDER_CHARS] or source.person.id,
        sender_id=source.person.id,
        reply_to=ReplyTo(source.chat.id, source.thread, source.message),
        written_at=source.at,
    )


def _run(tx: Transaction, new: NewMessage, *, routed: bool) -> None:
    """Enqueue a text of a person; with `routed`, its address decides who gets it."""
    store = submit if routed else submit_to
    try:
        store(tx, new)
    except NameTaken:
        store(tx, replace(new, sender=f"id {new.sender_id}"))


def _find(tx: Transaction, channel: str, change: Edited | Deleted) -> Original | None:
    """The message of a change, if its author is the author of the change."""
    events = [PlatformEvent(channel, each) for each in change.original]
    message_id = next(iter(find_receipts(tx, events).values()), None)
    found = None if message_id is None else tx.one(SELECT_MESSAGE, {"message_id": message_id})
    return found if found is not None and found.sender_id == change.source.person.id else None
