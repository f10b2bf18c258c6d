"""Chats: what is known of each chat on a channel, and up to where its messages were taken in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from sqlalchemy import ColumnElement, Select, bindparam, func, null, or_, select, update

from bullpen.core.events.append import append_event
from bullpen.core.events.channel import PairingApproved, PairingRevoked
from bullpen.core.message import SEPARATOR, ReplyTo
from bullpen.core.models import CHATS, RESPONSES
from bullpen.core.models.base import const, insert_if_absent
from bullpen.core.states import UNDELIVERED_STATES, ResponseState
from bullpen.core.store.statement import Statement, columns
from bullpen.core.store.transaction import DeferredRow, Transaction
from bullpen.core.text import check_text, visible_line

C = CHATS.c
R = RESPONSES.c

MAX_NAME_CHARS = 200


class Access(StrEnum):
    """Who is answered in an allowed group."""

    MEMBERS = "members"
    """Paired people."""
    EVERYONE = "everyone"
    """Everybody; unpaired people are guests."""


class Verbosity(StrEnum):
    """How much progress a chat shows."""

    QUIET = "quiet"
    NORMAL = "normal"
    VERBOSE = "verbose"


@dataclass(frozen=True, slots=True)
class ChatRecord:
    """A chat with all of its columns."""

    channel: str
    chat: str
    direct: bool
    name: str
    access: Access | None
    """Who is answered in a group; None: the group is not allowed."""
    allowed_by: str | None
    code: str | None
    code_expires_at: int | None
    cursor: str | None
    """The last place in the platform's history that was taken in."""
    cursor_at: int | None
    default_agent: str | None
    window_until: int | None
    opted_out_at: int | None
    migrated_to: str | None
    penalty_until: int | None
    person: str | None
    """The sender id of a direct chat."""
    last_in_at: int | None
    last_out_at: int | None
    told_at: int | None
    away_told_at: int | None
    verbosity: Verbosity | None
    created_at: int
    updated_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatSeen:
    """What one message tells about its chat."""

    chat: str
    direct: bool
    name: str = ""
    person: str | None = None
    cursor: str | None = None
    """The message's place in the platform's history."""
    cursor_at: int | None = None
    """The time of that place."""


def _here() -> tuple[ColumnElement[bool], ...]:
    return (C.channel == bindparam("account"), C.chat == bindparam("id"))


SELECT_CHAT: Statement[ChatRecord] = Statement(
    lambda: select(*columns(ChatRecord, CHATS)).where(*_here()), ChatRecord
)

LOCK_CHAT: Statement[ChatRecord] = Statement(
    lambda: select(*columns(ChatRecord, CHATS)).where(*_here()).with_for_update(), ChatRecord
)

SELECT_CHATS: Statement[ChatRecord] = Statement(
    lambda: (
        select(*columns(ChatRecord, CHATS))
        .where(C.channel == bindparam("account"), C.chat > bindparam("after"))
        .order_by(C.chat)
        .limit(bindparam("limit"))
    ),
    ChatRecord,
)

_NEW = ("channel", "chat", "direct", "name", "created_at", "updated_at")

INSERT_CHAT: Statement[None] = Statement(lambda: insert_if_absent(CHATS, _NEW))

TOUCH_CHAT: Statement[None] = Statement(
    lambda: (
        update(CHATS)
        .where(*_here())
        .values(
            direct=bindparam("is_direct", type_=C.direct.type),
            name=func.coalesce(bindparam("new_name", type_=C.name.type), C.name),
            person=func.coalesce(bindparam("who", type_=C.person.type), C.person),
            last_in_at=bindparam("now"),
            updated_at=bindparam("now"),
        )
    )
)

# A late or repeated message must not set the cursor back. Cursors of one time are ordered as texts,
# the longer one last, as platforms count.
MOVE_CURSOR: Statement[None] = Statement(
    lambda: (
        update(CHATS)
        .where(
            *_here(),
            or_(
                C.cursor_at.is_(None),
                C.cursor_at < bindparam("at"),
                (C.cursor_at == bindparam("at")) & _is_later(),
            ),
        )
        .values(cursor=bindparam("place"), cursor_at=bindparam("at"), updated_at=bindparam("now"))
    )
)


def _is_later() -> ColumnElement[bool]:
    new, old = bindparam("place", type_=C.cursor.type), func.coalesce(C.cursor, const(""))
    longer = func.length(new) > func.length(old)
    return or_(longer, (func.length(new) == func.length(old)) & (new > old))


def _setter(column: str) -> Statement[None]:
    return Statement(
        lambda: (
            update(CHATS)
            .where(*_here())
            .values({column: bindparam("value"), "updated_at": bindparam("now")})
        )
    )


SET_AGENT = _setter("default_agent")
SET_OPTED_OUT = _setter("opted_out_at")
SET_PENALTY = _setter("penalty_until")
SET_VERBOSITY = _setter("verbosity")
SET_SENT = _setter("last_out_at")
SET_TOLD = _setter("told_at")
SET_AWAY_TOLD = _setter("away_told_at")
SET_NAME = _setter("name")
SET_MIGRATED = _setter("migrated_to")

# Messages may come in late, and out of order.
SET_WINDOW: Statement[None] = Statement(
    lambda: (
        update(CHATS)
        .where(*_here(), or_(C.window_until.is_(None), C.window_until < bindparam("value")))
        .values(window_until=bindparam("value"), updated_at=bindparam("now"))
    )
)

SET_ACCESS: Statement[None] = Statement(
    lambda: (
        update(CHATS)
        .where(*_here())
        .values(
            access=bindparam("value"),
            allowed_by=bindparam("by"),
            code=null(),
            code_expires_at=null(),
            updated_at=bindparam("now"),
        )
    )
)

_MOVED = ("access", "allowed_by", "default_agent", "opted_out_at", "verbosity", "window_until")
"""The columns that a chat keeps when the platform gives it another id."""

MOVE_STATE: Statement[None] = Statement(
    lambda: (
        update(CHATS).where(*_here()).values({name: bindparam(f"old_{name}") for name in _MOVED})
    )
)


def _addressed(states: Sequence[ResponseState]) -> Statement[tuple[int, str]]:
    """The responses in these states to a chat and its threads."""

    def build() -> Select[tuple[int, str]]:
        names = [const(each.value) for each in states]
        prefix = bindparam("prefix", type_=R.reply_to.type)
        return select(R.id, R.reply_to).where(
            R.channel == bindparam("account"),
            # In the words of the partial indexes.
            R.status == names[0] if len(names) == 1 else R.status.in_(names),
            func.substr(R.reply_to, const(1), func.length(prefix)) == prefix,
        )

    return Statement(build)


SELECT_PENDING_TO = _addressed((ResponseState.PENDING,))

# A person may retry these.
SELECT_UNDELIVERED_TO = _addressed(UNDELIVERED_STATES)

SET_ADDRESS: Statement[None] = Statement(
    lambda: (
        update(RESPONSES).where(R.id == bindparam("response")).values(reply_to=bindparam("address"))
    )
)


def find_chat(tx: Transaction, channel: str, chat: str) -> ChatRecord | None:
    """The chat of this id, if it is known."""
    return tx.one(SELECT_CHAT, {"account": channel, "id": chat})


def ask_for_chat(tx: Transaction, channel: str, chat: str) -> DeferredRow[ChatRecord]:
    """The same, but the row is read later."""
    return tx.one_deferred(SELECT_CHAT, {"account": channel, "id": chat})


def touch_chat(tx: Transaction, channel: str, seen: ChatSeen, *, is_known: bool = False) -> None:
    """Record that a message came in. Call this in the transaction that stores the message.

    The cursor moves only forward. A new chat begins with the cursor of its first message. If the
    row was read before in this transaction (`is_known`), nothing waits for the result.
    """
    name = visible_line(check_text(seen.name, tx.settings.message_bytes, "the name of the chat"))
    for text in (seen.chat, seen.person or "", seen.cursor or ""):
        check_text(text, tx.settings.message_bytes, "the id of the chat")
    here = {"account": channel, "id": seen.chat, "now": tx.now}
    values = {"is_direct": seen.direct, "new_name": name[:MAX_NAME_CHARS] or None}
    touched = {**here, **values, "who": seen.person}
    if is_known:
        tx.write(TOUCH_CHAT, touched)
    elif tx.change(TOUCH_CHAT, touched) == 0:
        add_chat(tx, channel, seen.chat, direct=seen.direct)
        tx.write(TOUCH_CHAT, touched)
    if seen.cursor is not None:
        tx.write(MOVE_CURSOR, {**here, "place": seen.cursor, "at": seen.cursor_at or 0})


def move_cursor(tx: Transaction, channel: str, chat: str, cursor: str, at: int) -> None:
    """Move the cursor of a known chat past messages that were not stored."""
    tx.write(
        MOVE_CURSOR, {"account": channel, "id": chat, "place": cursor, "at": at, "now": tx.now}
    )


def add_chat(tx: Transaction, channel: str, chat: str, *, direct: bool, name: str = "") -> None:
    """Add a chat unless it is known, for example one that only got messages so far."""
    values = {"channel": channel, "chat": chat, "direct": direct, "name": name[:MAX_NAME_CHARS]}
    tx.write(INSERT_CHAT, {**values, "created_at": tx.now, "updated_at": tx.now})


def list_chats(
    tx: Transaction, channel: str, after: str = "", limit: int = 1000
) -> list[ChatRecord]:
    """The chats of a channel after an id, in the order of their ids."""
    return tx.all(SELECT_CHATS, {"account": channel, "after": after, "limit": limit})


def set_name(tx: Transaction, channel: str, chat: str, name: str) -> None:
    """Rename a chat, as its people did."""
    line = visible_line(check_text(name, tx.settings.message_bytes, "the name of the chat"))
    _write(tx, SET_NAME, channel, chat, line[:MAX_NAME_CHARS])


def set_default_agent(tx: Transaction, channel: str, chat: str, agent: str | None) -> None:
    """Send messages of this chat without a recipient to this agent; None: to the setting's."""
    _write(tx, SET_AGENT, channel, chat, agent)


def set_window(tx: Transaction, channel: str, chat: str, until: int) -> None:
    """Record until when the platform accepts free text for this chat; a later time is kept."""
    _write(tx, SET_WINDOW, channel, chat, until)


def set_opted_out(tx: Transaction, channel: str, chat: str, at: int | None) -> None:
    """Record that the person asked for no more messages, or with None that they want them again."""
    _write(tx, SET_OPTED_OUT, channel, chat, at)


def set_penalty(tx: Transaction, channel: str, chat: str, until: int) -> None:
    """Record until when the platform's rate limit holds for this chat."""
    _write(tx, SET_PENALTY, channel, chat, until)


def set_verbosity(tx: Transaction, channel: str, chat: str, verbosity: Verbosity | None) -> None:
    """Choose how much progress the chat shows; None: as much as `normal`."""
    _write(tx, SET_VERBOSITY, channel, chat, None if verbosity is None else verbosity.value)


def note_sent(tx: Transaction, channel: str, chat: str) -> None:
    """Record that a part was sent to this chat."""
    _write(tx, SET_SENT, channel, chat, tx.now)


def note_told(tx: Transaction, channel: str, chat: str) -> None:
    """Record that the chat got a notice about itself, such as that it is not allowed."""
    _write(tx, SET_TOLD, channel, chat, tx.now)


def note_away_told(tx: Transaction, channel: str, chat: str) -> None:
    """Record that the chat got the notice that messages waited while Bullpen was stopped."""
    _write(tx, SET_AWAY_TOLD, channel, chat, tx.now)


def allow_group(tx: Transaction, channel: str, chat: str, access: Access, by: str) -> bool:
    """Allow a group, or change who is answered there; False if the group is not known."""
    record = tx.one(LOCK_CHAT, {"account": channel, "id": chat})
    if record is None:
        return False
    here = {"account": channel, "id": chat, "now": tx.now}
    tx.write(SET_ACCESS, {**here, "value": access.value, "by": by})
    name, tier = record.name or chat, access.value
    event = PairingApproved(channel=channel, name=name, tier=tier, sender_id=None, chat=chat, by=by)
    append_event(tx, event)
    return True


def forbid_group(tx: Transaction, channel: str, chat: str, by: str) -> bool:
    """Forbid a group; False if it was neither allowed nor waiting."""
    record = tx.one(LOCK_CHAT, {"account": channel, "id": chat})
    if record is None or (record.access is None and record.code is None):
        return False
    here = {"account": channel, "id": chat, "now": tx.now}
    tx.write(SET_ACCESS, {**here, "value": None, "by": None})
    if record.access is not None:
        name = record.name or chat
        event = PairingRevoked(channel=channel, name=name, sender_id=None, chat=chat, by=by)
        append_event(tx, event)
    return True


def move_chat(tx: Transaction, channel: str, chat: str, to: str) -> int:
    """Follow a chat to its new id with its settings and responses; returns how many responses."""
    old = tx.one(LOCK_CHAT, {"account": channel, "id": chat})
    direct, name = (False, "") if old is None else (old.direct, old.name)
    for id_ in (chat, to):
        add_chat(tx, channel, id_, direct=direct, name=name)
    if old is not None and old.migrated_to != to:
        state = {name: getattr(old, name) for name in _MOVED}
        values = {
            f"old_{name}": each.value if isinstance(each, StrEnum) else each
            for name, each in state.items()
        }
        tx.write(MOVE_STATE, {**values, "account": channel, "id": to})
    _write(tx, SET_MIGRATED, channel, chat, to)
    prefix = f"{chat}{SEPARATOR}"
    found = [
        row
        for each in (SELECT_PENDING_TO, SELECT_UNDELIVERED_TO)
        for row in tx.all(each, {"account": channel, "prefix": prefix})
    ]
    moved = [
        {"response": id_, "address": str(replace(ReplyTo.parse(address), chat=to))}
        for id_, address in found
    ]
    tx.write_each(SET_ADDRESS, moved)
    return len(moved)


def _write(
    tx: Transaction, statement: Statement[None], channel: str, chat: str, value: str | int | None
) -> None:
    tx.write(statement, {"account": channel, "id": chat, "value": value, "now": tx.now})
