"""Intake of a person's message: routed, deduplicated and enqueued."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bullpen.core.errors import BadText, TextTooLong
from bullpen.core.events.append import append_event
from bullpen.core.events.base import MessageRef
from bullpen.core.events.conversation import AgentRouted, TeamChainStart
from bullpen.core.history import keep_post
from bullpen.core.message import ROOM, Accepted, NewMessage
from bullpen.core.queue.enqueue import (
    INSERT_RECEIPT,
    SELECT_RECEIPT,
    enqueue_many,
    find_message_state,
)
from bullpen.core.queue.lanes import lock_lane
from bullpen.core.roster.agents import load_address_book
from bullpen.core.roster.teams import Team, get_team
from bullpen.core.routing.address import RoutedText, route_text
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text


def room_copies(team: Team, new: NewMessage) -> list[NewMessage]:
    """What a person says in a room, for each member."""
    return [
        replace(
            new,
            agent=agent,
            channel=ROOM,
            team_id=team.id,
            # Nobody is answered who posts in a room, and each copy has an id of its own.
            reply_to=None,
            message_id=None,
            receipt=None,
        )
        for agent in team.members
    ]


@dataclass(frozen=True, slots=True)
class RoomReceipt:
    """A post: its number in the room, and the conversation that it begins."""

    id: int
    conversation_id: str


def post_in_room(tx: Transaction, team_id: str, text: str, sender: str) -> RoomReceipt:
    """A person says something in a room."""
    team = get_team(tx, team_id)
    conversation = tx.ids.new(ROOM)
    post = NewMessage(agent="", message=text, sender=sender, conversation_id=conversation)
    enqueue_many(tx, room_copies(team, post))
    return RoomReceipt(keep_post(tx, team.id, sender, text), conversation)


MAX_COPIES_FACTOR = 8
"""So many times the longest message is what one comes to at the most, all its copies counted."""


def submit(tx: Transaction, new: NewMessage) -> tuple[Accepted, ...]:
    """Store what a person wrote, for everyone whom it addresses.

    `new.agent` is whom it goes to if it addresses nobody; empty is the setting `default_agent`.
    All parts belong to one conversation, which has the id of the first; a post's is that as well.
    """
    check_text(new.message, tx.settings.message_bytes)
    check_text(f"{new.channel}{new.receipt}", tx.settings.message_bytes, "the receipt")
    if (known := _find_received(tx, new)) is not None:
        return (Accepted(known, fresh=False),)
    parts = route_text(new.message, load_address_book(tx), new.agent or tx.settings.default_agent)
    rooms = {part.room: get_team(tx, part.room) for part in parts if part.room is not None}
    recipients = [_recipients(part, rooms) for part in parts]
    _check_parts(tx, new, parts, recipients)
    for agent in sorted({agent for agents in recipients for agent in agents}):
        lock_lane(tx, agent)
    # Once more: a redelivery may have waited for the lock meanwhile.
    if (known := _find_received(tx, new)) is not None:
        return (Accepted(known, fresh=False),)
    root = new.message_id if len(parts) == 1 and not rooms else _conversation_id(tx, new, parts[0])
    ids = enqueue_many(tx, _messages(new, parts, rooms, root))
    accepted = _receipts(parts, recipients, new.conversation_id or root, ids)
    if new.receipt is not None:
        taken = {"channel": new.channel, "event_id": new.receipt, "created_at": tx.now}
        tx.write(INSERT_RECEIPT, {**taken, "message_id": accepted[0].message_id})
    for part, each in zip(parts, accepted, strict=True):
        if part.room is not None:
            keep_post(tx, part.room, new.sender, part.text)
        else:
            _append_routed(tx, part, each, new.conversation_id or accepted[0].message_id)
    return tuple(accepted)


def _find_received(tx: Transaction, new: NewMessage) -> str | None:
    if new.receipt is None:
        return None
    row = tx.one(SELECT_RECEIPT, {"channel": new.channel, "event_id": new.receipt})
    return None if row is None else row[0]


def _recipients(part: RoutedText, rooms: Mapping[str, Team]) -> tuple[str, ...]:
    if part.room is not None:
        return rooms[part.room].members
    assert part.agent is not None
    return (part.agent,)


def _check_parts(
    tx: Transaction,
    new: NewMessage,
    parts: Sequence[RoutedText],
    recipients: Sequence[Sequence[str]],
) -> None:
    size = sum(len(part.text) * len(to) for part, to in zip(parts, recipients, strict=True))
    if size > tx.settings.message_bytes * MAX_COPIES_FACTOR:
        raise TextTooLong("the message goes to so many that it would be too long in all")
    for part in parts:
        if not part.text and not new.files:
            raise BadText(
                f"there is nothing to tell @{part.agent}", hint="Write something after the name."
            )


def _conversation_id(tx: Transaction, new: NewMessage, first: RoutedText) -> str:
    """The id of the conversation: of its first message, or of the post that it begins with."""
    if new.message_id:
        return new.message_id
    prefix = new.channel if first.room is None else ROOM
    while True:
        made = tx.ids.new(prefix)
        if find_message_state(tx, made) is None:
            return made


def _messages(
    new: NewMessage, parts: Sequence[RoutedText], rooms: Mapping[str, Team], root: str | None
) -> list[NewMessage]:
    """One for each recipient of each part."""
    plain = replace(new, message_id=None, receipt=None, conversation_id=new.conversation_id or root)
    messages: list[NewMessage] = []
    for part in parts:
        if part.room is not None:
            messages += room_copies(rooms[part.room], replace(plain, message=part.text))
        elif part.agent is not None:
            team = part.team or new.team_id
            messages.append(replace(plain, agent=part.agent, message=part.text, team_id=team))
    # A post has no row of its own: the id that a client chose goes to its first copy.
    named = root if parts[0].room is None else new.message_id
    return [replace(messages[0], message_id=named), *messages[1:]]


def _receipts(
    parts: Sequence[RoutedText],
    recipients: Sequence[Sequence[str]],
    conversation: str | None,
    ids: Sequence[Accepted],
) -> list[Accepted]:
    accepted = []
    at = 0
    for part, to in zip(parts, recipients, strict=True):
        if part.room is None:
            accepted.append(ids[at])
        else:
            assert conversation is not None
            accepted.append(Accepted(conversation))
        at += len(to)
    return accepted


def _append_routed(tx: Transaction, part: RoutedText, stored: Accepted, conversation: str) -> None:
    about = MessageRef(part.agent, conversation, stored.message_id)
    append_event(tx, AgentRouted(about, team=part.team))
    if part.team is not None:
        append_event(tx, TeamChainStart(about, team=part.team))
