"""Edits: a person changes or deletes a message that was taken in before.

A message for several agents is a row for each. A row that waits is changed or cancelled. If a run
is already at work on it, the setting `edits` decides: `ask` offers to run the new text, `rerun`
runs it, `ignore` does nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from sqlalchemy import bindparam, select

from bullpen.channels.inbound import Deleted, Edited, Source
from bullpen.core.errors import BullpenError, StoreError, UnknownResponse
from bullpen.core.intake import MAX_SENDER_CHARS, post_in_room, store_as_person, submit_to
from bullpen.core.message import ROOM, NewMessage, ReplyTo
from bullpen.core.models import MESSAGES, RESPONSES
from bullpen.core.models.archive import in_conversation
from bullpen.core.models.base import decode_texts
from bullpen.core.queue.attach import change_post, waits
from bullpen.core.queue.enqueue import PlatformEvent, find_first, find_receipts, record_receipts
from bullpen.core.queue.lanes import lock_lanes
from bullpen.core.queue.manage import cancel, revise
from bullpen.core.roster.agents import load_address_book
from bullpen.core.routing.address import RoutedText, route_text
from bullpen.core.states import WAITING_STATES, MessageState
from bullpen.core.store.group_commit import savepoint
from bullpen.core.store.statement import Statement, columns
from bullpen.core.store.transaction import Transaction
from bullpen.core.strict_json import Json
from bullpen.core.text import visible_line

RERUN, IGNORE = "rerun", "ignore"
M, R = MESSAGES.c, RESPONSES.c


@dataclass(frozen=True, slots=True)
class Original:
    """A row of the message that a person changes."""

    message_id: str
    conversation_id: str
    status: str
    channel: str
    agent: str
    team_id: str | None
    message: str
    files: str | None
    last_error: str | None
    created_at: int
    conversation_at: int | None

    @property
    def state(self) -> MessageState:
        """How far it is."""
        return MessageState(self.status)

    @property
    def waits(self) -> bool:
        """Whether no run has begun."""
        return self.state in WAITING_STATES

    @property
    def room(self) -> str | None:
        """The team in whose room it was posted."""
        return self.team_id if self.channel == ROOM else None

    def with_text(self, text: str) -> RoutedText:
        """Another text for the same recipient."""
        if self.room is not None:
            return RoutedText(text, None, None, self.room)
        return RoutedText(text, self.agent, self.team_id, None)


SELECT_ORIGINALS: Statement[Original] = Statement(
    lambda: (
        select(*columns(Original, MESSAGES))
        .where(
            in_conversation(),
            M.parent_id.is_(None),
            M.from_agent.is_(None),
            M.sender_id == bindparam("sender"),
        )
        .order_by(M.id)
    ),
    Original,
)

SELECT_OFFER: Statement[tuple[str | None, str | None]] = Statement(
    lambda: select(R.sender_id, R.metadata).where(
        R.message_id == bindparam("message_id"), R.channel == bindparam("channel")
    )
)


@dataclass(frozen=True, slots=True)
class NewText:
    """A changed text, and its recipient."""

    text: str
    agent: str = ""
    team: str | None = None
    room: str | None = None
    moved: bool = False
    """Whether the message was for others before."""

    @classmethod
    def parse(cls, values: Mapping[str, Json]) -> NewText:
        """The text in the metadata of an offer."""
        text, agent, team, room = (values.get(each) for each in ("text", "agent", "team", "room"))
        return cls(
            str(text or ""),
            str(agent or ""),
            None if team is None else str(team),
            None if room is None else str(room),
        )


@dataclass(frozen=True, slots=True)
class Offer:
    """A reply to an edit, with the new texts to run if the person wants that."""

    text: str
    runs: tuple[NewText, ...] = ()

    def metadata(self) -> dict[str, object]:
        """What `accept_offer` needs."""
        return {"runs": [asdict(each) for each in self.runs]}


def apply_edit(
    tx: Transaction, channel: str, edit: Edited, policy: str, *, routed: bool
) -> Offer | None:
    """Change a message that waits; otherwise follow the policy. An error is a reply.

    With `routed`, the new text may be addressed to another agent. A guest's never is.
    """
    try:
        with savepoint(tx):
            found = _lock(tx, channel, edit)
            return _apply(tx, channel, edit, found, policy, routed=routed)
    except StoreError:
        raise
    except BullpenError as error:
        return Offer(f"Your edit was not accepted: {error}. {error.hint or ''}".strip())


def _apply(
    tx: Transaction,
    channel: str,
    edit: Edited,
    found: Sequence[Original],
    policy: str,
    *,
    routed: bool,
) -> Offer | None:
    waiting = [each for each in found if each.waits]
    running = [each for each in found if each.state is MessageState.PROCESSING]
    if not waiting and not running:
        return None
    texts, new = _match(found, _route(tx, edit.text, found) if routed else None, edit.text)
    if waiting:
        if (new or any(texts[each] is None for each in waiting)) and waits(
            tx, found[0].conversation_id
        ):
            return Offer("The files of your message are being fetched. Edit it again in a moment.")
        _change(tx, channel, edit.source, waiting, texts, new)
        new = []
    running = [each for each in running if texts[each] != each.message]
    runs = [
        *(_new_text(each.with_text(text)) for each in running if (text := texts[each]) is not None),
        *(_new_text(each, moved=True) for each in new),
    ]
    if not running or policy == IGNORE:
        return None
    if policy == RERUN:
        for each in runs:
            _run(tx, _message(channel, edit.source), each)
        return None
    return _offer(running, tuple(runs))


def _offer(running: Sequence[Original], runs: tuple[NewText, ...]) -> Offer:
    names = " and ".join(f"@{each}" for each in dict.fromkeys(each.agent for each in running))
    are, run = ("are", "runs") if " " in names else ("is", "run")
    then = ", or let the new text run after it" if runs else ""
    return Offer(
        f"{names} {are} already working on the text before your edit. "
        f"Send /stop to cancel the {run}{then}.",
        runs,
    )


def _route(tx: Transaction, text: str, found: Sequence[Original]) -> Sequence[RoutedText] | None:
    """The new text by recipient; None if it names nobody, and so stays with its recipients."""
    if not text.strip():
        return None  # only files are left
    parts = route_text(text, load_address_book(tx), found[0].agent)
    return None if len(parts) == 1 and parts[0].text == text else parts


def _match(
    found: Sequence[Original], parts: Sequence[RoutedText] | None, text: str
) -> tuple[dict[Original, str | None], list[RoutedText]]:
    """The new text of each row, None if it is for others now; and the texts of new recipients."""
    if parts is None:
        return dict.fromkeys(found, text), []
    left = list(parts)
    texts: dict[Original, str | None] = {}
    posts = {each.room: each for each in parts if each.room is not None}
    for each in found:
        if each.room is not None:
            part = posts.get(each.room)
        else:
            part = next((one for one in left if one.agent == each.agent), None)
        texts[each] = None if part is None else part.text
        if part in left:
            left.remove(part)
    return texts, left


def _change(
    tx: Transaction,
    channel: str,
    source: Source,
    waiting: Sequence[Original],
    texts: dict[Original, str | None],
    new: Sequence[RoutedText],
) -> None:
    """Give the rows that wait their new texts, or cancel them; store those of new recipients."""
    for each in waiting:
        text = texts[each]
        if text is None:
            cancel(tx, each.message_id, "its author addressed it to another agent")
        elif text != each.message:
            revise(tx, each.message_id, text)
    for room, old, text in {(each.room, each.message, texts[each]) for each in waiting}:
        if room is not None and text is not None:
            change_post(tx, room, old, text)
    first = waiting[0]
    held = first.last_error or "held" if first.state is MessageState.HELD else None
    message = replace(
        _message(channel, source),
        files=tuple(decode_texts(first.files)),
        hold_reason=held,
        # A later edit finds it by its conversation.
        conversation_id=first.conversation_id,
        conversation_at=first.conversation_at or first.created_at,
    )
    for part in new:
        _run(tx, message, _new_text(part))


def withdraw(tx: Transaction, channel: str, deleted: Deleted) -> None:
    """Cancel a deleted message that waits. A run that has begun continues; /stop cancels it."""
    for each in _lock(tx, channel, deleted):
        if each.waits:
            cancel(tx, each.message_id, "deleted by its author")


def accept_offer(tx: Transaction, channel: str, offer: str, source: Source, *, routed: bool) -> str:
    """Run the edited texts of an offer; only its author may."""
    row = tx.one(SELECT_OFFER, {"message_id": offer, "channel": channel})
    metadata: Json = json.loads(row[1]) if row is not None and row[1] else None
    runs = metadata.get("runs") if isinstance(metadata, dict) else None
    if row is None or row[0] != source.person.id or not isinstance(runs, list) or not runs:
        raise UnknownResponse("there is no edit of yours to run")
    events = [PlatformEvent(channel, f"offer:{offer}")]
    if find_first(tx, events) is None:
        for each in runs:
            if isinstance(each, dict) and (routed or not each.get("moved")):
                _run(tx, _message(channel, source), NewText.parse(each))
        record_receipts(tx, events, offer)
    return "Added the edited text to the queue."


def _message(channel: str, source: Source) -> NewMessage:
    return NewMessage(
        agent="",
        message="",
        channel=channel,
        sender=visible_line(source.person.name)[:MAX_SENDER_CHARS] or source.person.id,
        sender_id=source.person.id,
        reply_to=ReplyTo(source.chat.id, source.thread, source.message),
        written_at=source.at,
    )


def _new_text(part: RoutedText, *, moved: bool = False) -> NewText:
    return NewText(part.text, part.agent or "", part.team, part.room, moved)


def _run(tx: Transaction, new: NewMessage, text: NewText) -> None:
    """Enqueue a new text of a person for its recipient."""

    def store(new: NewMessage) -> None:
        if text.room is not None:
            post_in_room(tx, text.room, text.text, new.sender)
        else:
            submit_to(tx, replace(new, agent=text.agent, team_id=text.team, message=text.text))

    store_as_person(new, store)


def _lock(tx: Transaction, channel: str, change: Edited | Deleted) -> list[Original]:
    """The rows of the message of a change, if its author is the author of the change.

    Their lanes are locked, so that no run begins meanwhile.
    """
    events = [PlatformEvent(channel, each) for each in change.original]
    conversation = next(iter(find_receipts(tx, events).values()), None)
    if conversation is None:
        return []
    values = {"conversation": conversation, "sender": change.source.person.id}
    agents = [each.agent for each in tx.all(SELECT_ORIGINALS, values)]
    if not agents:
        return []
    lock_lanes(tx, agents)
    return tx.all(SELECT_ORIGINALS, values)
