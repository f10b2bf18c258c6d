"""Pairing: an unpaired person or group gets a code, which the owner approves.

A code has 8 characters, is valid for an hour, and is only shown to its recipient. At most three
codes of a channel wait at once, and a sender gets one reply an hour, whatever they send.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass

from sqlalchemy import Select, Update, bindparam, func, literal, select, update

from bullpen.core.channels.chats import (
    LOCK_CHAT,
    Access,
    ChatRecord,
    add_chat,
    allow_group,
    find_chat,
)
from bullpen.core.channels.health import lock_health
from bullpen.core.channels.senders import (
    LOCK_SENDER,
    Sender,
    Tier,
    add_sender,
    check_name,
    find_sender,
    is_owner,
    set_tier,
)
from bullpen.core.clock import HOUR, MINUTE
from bullpen.core.errors import PairingLockedOut
from bullpen.core.events.append import append_event
from bullpen.core.events.channel import PairingAsked, PairingLocked
from bullpen.core.message import Answer, ReplyTo
from bullpen.core.models import CHANNEL_HEALTH, CHATS, SENDERS
from bullpen.core.models.base import const
from bullpen.core.outbox.write import send_to_person
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import format_count

CODE_ALPHABET = "ABCDEFGHJKMNPQRSTVWXYZ23456789"
"""Without characters that look alike: 0 and O, 1, I and L, U and V."""
CODE_CHARS = 8
CODE_LIFETIME = HOUR
REPLY_INTERVAL = HOUR
MAX_WAITING = 3
MAX_WRONG_CODES = 5
LOCK_TIME = HOUR

C, H, S = CHATS.c, CHANNEL_HEALTH.c, SENDERS.c


@dataclass(frozen=True, slots=True)
class PairingRequest:
    """A person or a group that waits for approval."""

    channel: str
    id: str
    """The id of the sender, or of the chat."""
    name: str
    code: str
    expires_at: int
    group: bool


def _select_waiting(group: bool) -> Statement[PairingRequest]:
    def build() -> Select[tuple[object, ...]]:
        c, id_ = (C, C.chat) if group else (S, S.sender_id)
        return (
            select(c.channel, id_, c.name, c.code, c.code_expires_at, literal(group))
            .where(
                c.channel == bindparam("account"),
                c.code.is_not(None),
                c.code_expires_at > bindparam("now"),
                c.code_expires_at < bindparam("now") + 2 * CODE_LIFETIME,
            )
            .order_by(c.code_expires_at)
        )

    return Statement(build, PairingRequest)


SELECT_WAITING = (_select_waiting(group=False), _select_waiting(group=True))


def _change_code(group: bool, *names: str) -> Statement[None]:
    """Set these columns of a person or a group that waits."""

    def build() -> Update:
        table, id_ = (CHATS, C.chat) if group else (SENDERS, S.sender_id)
        return (
            update(table)
            .where(table.c.channel == bindparam("account"), id_ == bindparam("id"))
            .values({each: bindparam(f"new_{each}") for each in names})
        )

    return Statement(build)


_CODE = ("code", "code_expires_at")
_ASKED = (*_CODE, "told_at", "name")

SET_SENDER_CODE = _change_code(False, *_ASKED, "last_at", "asked_in")
SET_CHAT_CODE = _change_code(True, *_ASKED, "updated_at")
_NO_CODE = tuple(f"new_{each}" for each in _CODE)
CLEAR_CODE = {each: _change_code(each, *_CODE) for each in (False, True)}

SELECT_WRONG: Statement[tuple[int, int]] = Statement(
    lambda: select(
        func.coalesce(H.wrong_codes, const(0)), func.coalesce(H.wrong_code_at, const(0))
    ).where(H.channel == bindparam("account"))
)

SET_WRONG: Statement[None] = Statement(
    lambda: (
        update(CHANNEL_HEALTH)
        .where(H.channel == bindparam("account"))
        .values(
            wrong_codes=bindparam("count"),
            wrong_code_at=bindparam("now"),
            locked_until=bindparam("until"),
        )
    )
)


def request_pairing(
    tx: Transaction, channel: str, sender_id: str, name: str, asked_in: ReplyTo | None = None
) -> str | None:
    """The pairing code to send to an unpaired person; None if they get no reply.

    The message that they are paired goes where they asked, to `asked_in`.
    """

    def is_due(sender: Sender | None) -> bool:
        return sender is None or (sender.tier is None and not _is_told(tx, sender.told_at))

    if is_owner(tx.settings, channel, sender_id) or not is_due(find_sender(tx, channel, sender_id)):
        return None
    code = _new_code(tx, channel)
    if code is None:
        return None
    add_sender(tx, channel, sender_id, name)
    if not is_due(tx.one(LOCK_SENDER, {"account": channel, "id": sender_id})):
        return None
    shown = check_name(tx, name)
    place = None if asked_in is None else str(asked_in)
    more = {"new_last_at": tx.now, "new_asked_in": place}
    tx.write(SET_SENDER_CODE, {**_new_values(tx, channel, sender_id, shown, code), **more})
    shown = shown or sender_id
    append_event(tx, PairingAsked(channel=channel, name=shown, sender_id=sender_id, chat=None))
    return code


def request_group(tx: Transaction, channel: str, chat: str, name: str) -> str | None:
    """The pairing code to send to a group that is not allowed; None if it gets no reply."""

    def is_due(group: ChatRecord | None) -> bool:
        return group is None or (group.access is None and not _is_told(tx, group.told_at))

    if not is_due(find_chat(tx, channel, chat)):
        return None
    code = _new_code(tx, channel)
    if code is None:
        return None
    add_chat(tx, channel, chat, direct=False)
    if not is_due(tx.one(LOCK_CHAT, {"account": channel, "id": chat})):
        return None
    shown = check_name(tx, name)
    values = _new_values(tx, channel, chat, shown, code)
    tx.write(SET_CHAT_CODE, {**values, "new_updated_at": tx.now})
    append_event(tx, PairingAsked(channel=channel, name=shown or chat, sender_id=None, chat=chat))
    return code


def list_waiting(tx: Transaction, channel: str) -> list[PairingRequest]:
    """The requests of a channel that wait for approval, the oldest first."""
    values = {"account": channel, "now": tx.now}
    found = [row for each in SELECT_WAITING for row in tx.all(each, values)]
    return sorted(found, key=lambda each: each.expires_at)


def approve(
    tx: Transaction,
    channel: str,
    code: str,
    tier: Tier,
    by: str,
    *,
    access: Access = Access.MEMBERS,
) -> Sender | ChatRecord | None:
    """Approve the person or the group with this code; None if no request has it.

    A wrong code is counted, so commit this also if it returns None: after five, no code of the
    channel is accepted for an hour.
    """
    health = lock_health(tx, channel)
    if health.locked_until is not None and 0 < health.locked_until - tx.now <= 2 * LOCK_TIME:
        minutes = -(-(health.locked_until - tx.now) // MINUTE)
        raise PairingLockedOut(
            f"{channel} accepts no pairing code for {format_count(minutes, 'minute')}:"
            " too many wrong ones"
        )
    request = _find_request(tx, channel, code)
    if request is None:
        _count_wrong(tx, channel)
        return None
    tx.write(SET_WRONG, {"account": channel, "count": 0, "until": None, "now": tx.now})
    if not request.group:
        return set_tier(tx, channel, request.id, tier, by)
    approve_group(tx, channel, request.id, access, by)
    return find_chat(tx, channel, request.id)


def approve_group(tx: Transaction, channel: str, chat: str, access: Access, by: str) -> None:
    """Allow a group that waits, and notify it."""
    allow_group(tx, channel, chat, access, by)
    group = find_chat(tx, channel, chat)
    send_to_person(
        tx,
        Answer(message=describe_access(access)),
        channel=channel,
        sender=group.name if group is not None and group.name else chat,
        reply_to=str(ReplyTo(chat)),
    )


def describe_access(access: Access) -> str:
    """Who is answered in an allowed group, as its people read it."""
    who = "Everyone in it" if access is Access.EVERYONE else "Paired people"
    return f"This group is now allowed. {who} can write to me with a mention."


def deny(tx: Transaction, channel: str, code: str) -> PairingRequest | None:
    """End the request with this code; None if there is none. The sender is not told."""
    lock_health(tx, channel)
    request = _find_request(tx, channel, code)
    if request is not None:
        values = {"account": channel, "id": request.id}
        tx.write(CLEAR_CODE[request.group], {**values, **dict.fromkeys(_NO_CODE)})
    return request


def _find_request(tx: Transaction, channel: str, code: str) -> PairingRequest | None:
    """The request with this code, however it was typed."""
    waiting = list_waiting(tx, channel)
    return next((each for each in waiting if is_code(each.code, code)), None)


def is_code(code: str | None, typed: str) -> bool:
    """Whether this is the code, however it was typed."""
    plain = "".join(each for each in typed.upper() if each.isascii() and each.isalnum())
    return code is not None and hmac.compare_digest(code, plain)


def _is_told(tx: Transaction, told_at: int | None) -> bool:
    """Whether a reply was sent within the hour.

    A time in the future is of a clock that was wrong. It must not keep a person out for long.
    """
    return told_at is not None and abs(tx.now - told_at) < REPLY_INTERVAL


def _new_code(tx: Transaction, channel: str) -> str | None:
    """A new code; None if enough requests of the channel wait."""
    # The row of the channel is locked, so that of two requests at once the second sees the first.
    lock_health(tx, channel)
    waiting = list_waiting(tx, channel)
    if len(waiting) >= MAX_WAITING:
        return None
    taken = {each.code for each in waiting}
    while True:
        code = "".join(secrets.choice(CODE_ALPHABET) for _ in range(CODE_CHARS))
        if code not in taken:
            return code


def _new_values(tx: Transaction, channel: str, id_: str, name: str, code: str) -> dict[str, object]:
    return {
        "account": channel,
        "id": id_,
        "new_name": name,
        "new_code": code,
        "new_code_expires_at": tx.now + CODE_LIFETIME,
        "new_told_at": tx.now,
    }


def _count_wrong(tx: Transaction, channel: str) -> None:
    row = tx.one(SELECT_WRONG, {"account": channel})
    count, last = row or (0, 0)
    count = 1 if last <= tx.now - LOCK_TIME else count + 1
    locked = count >= MAX_WRONG_CODES
    until = tx.now + LOCK_TIME if locked else None
    values = {"account": channel, "count": 0 if locked else count, "until": until, "now": tx.now}
    tx.write(SET_WRONG, values)
    if locked:
        append_event(tx, PairingLocked(channel=channel, attempts=count))
