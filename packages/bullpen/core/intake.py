"""Intake of messages from people and schedules: route, deduplicate and enqueue them."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from sqlalchemy import bindparam, select

from bullpen.core.errors import BadText, NameTaken, TextTooLong, UnknownRecipient
from bullpen.core.events.append import append_event
from bullpen.core.events.base import MessageRef
from bullpen.core.events.conversation import AgentRouted, TeamChainStart
from bullpen.core.files import require_free_space
from bullpen.core.history import insert_post
from bullpen.core.ids import SYSTEM_NAMES
from bullpen.core.message import (
    INTERNAL_CHANNELS,
    PULL_CHANNELS,
    ROOM,
    Accepted,
    Answer,
    NewMessage,
)
from bullpen.core.models import RESPONSES
from bullpen.core.models.archive import MESSAGE_TABLES, in_conversation, live_and_archived
from bullpen.core.models.base import const
from bullpen.core.outbox.write import send_to_person
from bullpen.core.queue.enqueue import (
    PlatformEvent,
    Submission,
    check_message,
    enqueue,
    find_first,
    store_submissions,
)
from bullpen.core.queue.message_ids import find_message_state
from bullpen.core.roster.agents import load_address_book
from bullpen.core.roster.teams import Team, get_team
from bullpen.core.routing.address import AddressBook, RoutedText, route_text
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text, visible_line

SELECT_ANSWERED: Statement[tuple[int]] = Statement(
    lambda: (
        select(RESPONSES.c.id)
        .where(RESPONSES.c.message_id == bindparam("message_id"))
        .limit(const(1))
    )
)

Result = TypeVar("Result")

LONG_TEXT_CHARS = 16 << 10
"""Longer texts are refused while only the disk's reserve is left."""

MAX_SENDER_CHARS = 200

SELECT_PARTS: Statement[tuple[int, str, str, str | None]] = Statement(
    lambda: live_and_archived(
        MESSAGE_TABLES,
        lambda table: select(
            table.c.id, table.c.message_id, table.c.channel, table.c.team_id
        ).where(
            in_conversation(table),
            table.c.parent_id.is_(None),
            table.c.from_agent.is_(None),
        ),
    )
)

MAX_COPIES_FACTOR = 8
"""The most bytes of all copies of a message together, as a multiple of `message_bytes`."""


@dataclass(frozen=True, slots=True)
class RoomReceipt:
    """A stored post: its id in the room, and the conversation that it starts."""

    id: int
    conversation_id: str


def submit(
    tx: Transaction,
    new: NewMessage,
    *,
    is_fresh: bool = False,
    book: AddressBook | None = None,
) -> tuple[Accepted, ...]:
    """Store a person's message for all of its recipients.

    A text without an address goes to `new.agent` or, if that is empty, to the setting
    `default_agent`. All parts belong to one conversation, which has the id of the first part. A
    room post has no id of its own; its receipt has that of the conversation.

    A caller with many messages can look up the receipts itself (`is_fresh`: there were none), and
    load the address book once in the same transaction.
    """
    check_text(new.message, tx.settings.message_bytes)
    require_space(tx, len(new.message) + len(new.payload or ""))
    receipts = "".join((new.channel, *new.event_ids))
    check_text(receipts, tx.settings.message_bytes, "the receipt")
    if not is_fresh and (first := find_first(tx, PlatformEvent.of(new))):
        # A redelivery is not routed again, since its recipient may have been removed meanwhile.
        return _repeat(tx, first)
    book = book or load_address_book(tx)
    parts = route_text(new.message, book, new.agent or tx.settings.default_agent)
    new = _with_sender(tx, new, book if any(part.room is not None for part in parts) else None)
    rooms = {part.room: get_team(tx, part.room) for part in parts if part.room is not None}
    _check_parts(tx, new, parts, rooms)
    return _store_parts(tx, new, parts, rooms)[0]


def submit_to(tx: Transaction, new: NewMessage) -> Accepted:
    """Store a message, for example of a schedule, for the given agent and team, without routing."""
    require_space(tx, len(new.message) + len(new.payload or ""))
    if new.origin is None:
        new = _with_sender(tx, new)
    accepted = enqueue(tx, new)
    if new.team_id is not None and accepted.fresh:
        message_id = accepted.message_id
        about = MessageRef(new.agent, new.conversation_id or message_id, message_id)
        append_event(tx, TeamChainStart(about, team=new.team_id))
    return accepted


def store_as_person(new: NewMessage, store: Callable[[NewMessage], Result]) -> Result:
    """Store the message of a person on a channel, under their id if their name is reserved."""
    try:
        return store(new)
    except NameTaken:
        return store(replace(new, sender=f"id {new.sender_id}"))


def post_in_room(
    tx: Transaction, team_id: str, text: str, sender: str, key_id: str | None = None
) -> RoomReceipt:
    """Store a person's post in a room for every member, without routing its text."""
    team = get_team(tx, team_id)
    require_space(tx, len(text))
    new = NewMessage(agent="", message=text, channel=ROOM, sender=sender, key_id=key_id)
    new = _with_sender(tx, new, load_address_book(tx))
    part = RoutedText(text=text, agent=None, team=None, room=team.id)
    (accepted,), (post,) = _store_parts(tx, new, [part], {team.id: team})
    return RoomReceipt(post, accepted.message_id)


def answer_unknown_recipient(tx: Transaction, new: NewMessage, error: UnknownRecipient) -> None:
    """Send the error to the person on their channel, once for each id that a client chose.

    Clients of channels do not show errors. On channels without a client the caller sees the error.
    """
    if new.channel in PULL_CHANNELS or new.channel in INTERNAL_CHANNELS:
        return
    if new.message_id is not None and (
        tx.one(SELECT_ANSWERED, {"message_id": new.message_id}) is not None
        or find_message_state(tx, new.message_id) is not None
    ):
        return
    send_to_person(
        tx,
        Answer(message=f"{str(error)[:1].upper()}{str(error)[1:]}.\n{error.hint}"),
        channel=new.channel,
        sender=new.sender,
        sender_id=new.sender_id,
        message_id=new.message_id,
        reply_to=None if new.reply_to is None else str(new.reply_to),
    )


def require_space(tx: Transaction, size: int) -> None:
    """Refuse a long text while the disk is nearly full; short texts are still accepted."""
    if size > LONG_TEXT_CHARS and tx.dialect == "sqlite":
        require_free_space(tx.settings.home, tx.settings.free_bytes_floor, size)


def _with_sender(
    tx: Transaction, new: NewMessage, in_room: AddressBook | None = None
) -> NewMessage:
    """The message with a one-line sender; Bullpen's own names are refused, and in rooms agents'.

    Outside of rooms, where agents do not speak beside people, a sender may be named like an agent.
    """
    sender = check_text(new.sender, tx.settings.message_bytes, "the sender")
    name = visible_line(sender)[:MAX_SENDER_CHARS]
    # A character without a width hides the name from the comparison, but not from people.
    shown = "".join(each for each in unicodedata.normalize("NFKC", name) if each.isprintable())
    plain = shown.strip("@# ")
    if plain.casefold() in SYSTEM_NAMES or (
        in_room is not None
        and (in_room.find(plain) is not None or in_room.find_team(plain) is not None)
    ):
        raise NameTaken(
            f"the sender {name!r} is reserved: it is not the name of a person",
            hint="Use your own name as `sender`.",
        )
    return new if name == new.sender else replace(new, sender=name)


def _repeat(tx: Transaction, first_id: str) -> tuple[Accepted, ...]:
    """The receipts of all parts of a message that was stored before, in the same order."""
    rows = sorted(tx.all(SELECT_PARTS, {"conversation": first_id}))
    # All copies of a room post are one part, which has no id of its own.
    parts = {
        team if channel == ROOM else message_id: first_id if channel == ROOM else message_id
        for _, message_id, channel, team in rows
    }
    ids = list(parts.values())
    if first_id not in ids[:1]:
        ids.insert(0, first_id)
    return tuple(Accepted(each, fresh=False) for each in ids)


def _check_parts(
    tx: Transaction, new: NewMessage, parts: Sequence[RoutedText], rooms: Mapping[str, Team]
) -> None:
    size = sum(len(part.text) * len(_recipients(part, rooms)) for part in parts)
    if size > tx.settings.message_bytes * MAX_COPIES_FACTOR:
        raise TextTooLong(
            "the copies of this message are too long together",
            hint="Send a shorter text, or send it to fewer recipients.",
        )
    for part in parts:
        if not part.text and not new.files:
            raise BadText(
                f"the message to @{part.agent} is empty", hint="Write a text after the name."
            )


def _store_parts(
    tx: Transaction, new: NewMessage, parts: Sequence[RoutedText], rooms: Mapping[str, Team]
) -> tuple[tuple[Accepted, ...], list[int]]:
    """Enqueue each part for its recipients; returns the receipts and the ids of the posts."""
    first_id = (
        new.message_id if len(parts) == 1 and not rooms else _conversation_id(tx, new, parts[0])
    )
    conversation = new.conversation_id or first_id
    messages = _messages_of_parts(new, parts, rooms, first_id)
    for message in messages:
        check_message(tx, message)
    submission = Submission(
        messages,
        PlatformEvent.of(new),
        receipt_id=None if parts[0].room is None else conversation,
    )
    (stored,) = store_submissions(tx, [submission])
    if not stored[0].fresh:
        return _repeat(tx, stored[0].message_id), []
    accepted = _receipts_of_parts(parts, rooms, conversation, stored)
    posts = []
    for part, each in zip(parts, accepted, strict=True):
        if part.room is not None:
            posts.append(insert_post(tx, part.room, new.sender, part.text))
        else:
            _append_routed(tx, part, each, new.conversation_id or accepted[0].message_id)
    return accepted, posts


def _conversation_id(tx: Transaction, new: NewMessage, first: RoutedText) -> str:
    """The id that the client chose, or a new, unused one."""
    if new.message_id:
        return new.message_id
    prefix = new.channel if first.room is None else ROOM
    while True:
        id_ = tx.ids.new(prefix)
        if find_message_state(tx, id_) is None:
            return id_


def _recipients(part: RoutedText, rooms: Mapping[str, Team]) -> tuple[str, ...]:
    if part.room is not None:
        return rooms[part.room].members
    assert part.agent is not None
    return (part.agent,)


def _messages_of_parts(
    new: NewMessage, parts: Sequence[RoutedText], rooms: Mapping[str, Team], first_id: str | None
) -> list[NewMessage]:
    """One message for each recipient of each part."""
    conversation = new.conversation_id or first_id
    if len(parts) == 1 and (part := parts[0]).agent is not None:
        return [
            replace(
                new,
                agent=part.agent,
                message=part.text,
                team_id=part.team or new.team_id,
                message_id=first_id,
                event_ids=(),
                conversation_id=conversation,
            )
        ]
    plain = replace(new, message_id=None, event_ids=(), conversation_id=conversation)
    messages: list[NewMessage] = []
    for part in parts:
        if part.room is not None:
            messages += _room_copies(rooms[part.room], replace(plain, message=part.text))
        elif part.agent is not None:
            team = part.team or new.team_id
            messages.append(replace(plain, agent=part.agent, message=part.text, team_id=team))
    # A post has no row of its own, so its first copy gets the id that a client chose.
    message_id = first_id if parts[0].room is None else new.message_id
    return [replace(messages[0], message_id=message_id), *messages[1:]]


def _room_copies(team: Team, post: NewMessage) -> list[NewMessage]:
    """A copy of the post for each member, without a reply address: a post gets no response."""
    post = replace(post, channel=ROOM, team_id=team.id, reply_to=None)
    return [replace(post, agent=agent) for agent in team.members]


def _receipts_of_parts(
    parts: Sequence[RoutedText],
    rooms: Mapping[str, Team],
    conversation: str | None,
    stored: Sequence[Accepted],
) -> tuple[Accepted, ...]:
    """The receipt of each part: the id of a message, or for a post that of the conversation."""
    accepted = []
    at = 0
    for part in parts:
        if part.room is None:
            accepted.append(stored[at])
        else:
            assert conversation is not None
            accepted.append(Accepted(conversation))
        at += len(_recipients(part, rooms))
    return tuple(accepted)


def _append_routed(tx: Transaction, part: RoutedText, stored: Accepted, conversation: str) -> None:
    about = MessageRef(part.agent, conversation, stored.message_id)
    append_event(tx, AgentRouted(about, team=part.team))
    if part.team is not None:
        append_event(tx, TeamChainStart(about, team=part.team))
