"""Pairing: an unpaired person or group gets a code, which the owner approves.

A code has 8 characters, is valid for an hour, and is only shown to its recipient. At most three
codes of a channel wait at once, and a sender gets one reply an hour, whatever they send.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass

from sqlalchemy import Select, bindparam, func, literal, null, select, update

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
from bullpen.core.models import CHANNEL_HEALTH, CHATS, SENDERS
from bullpen.core.models.base import const
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
            )
            .order_by(c.code_expires_at)
        )

    return Statement(build, PairingRequest)


SELECT_WAITING = (_select_waiting(group=False), _select_waiting(group=True))

SET_SENDER_CODE: Statement[None] = Statement(
    lambda: (
        update(SENDERS)
        .where(S.channel == bindparam("account"), S.sender_id == bindparam("id"))
        .values(
            code=bindparam("new_code"),
            code_expires_at=bindparam("expires"),
            told_at=bindparam("now"),
            name=bindparam("new_name"),
            last_at=bindparam("now"),
        )
    )
)

SET_CHAT_CODE: Statement[None] = Statement(
    lambda: (
        update(CHATS)
        .where(C.channel == bindparam("account"), C.chat == bindparam("id"))
        .values(
            code=bindparam("new_code"),
            code_expires_at=bindparam("expires"),
            told_at=bindparam("now"),
            name=bindparam("new_name"),
            updated_at=bindparam("now"),
        )
    )
)

CLEAR_SENDER_CODE: Statement[None] = Statement(
    lambda: (
        update(SENDERS)
        .where(S.channel == bindparam("account"), S.sender_id == bindparam("id"))
        .values(code=null(), code_expires_at=null())
    )
)

CLEAR_CHAT_CODE: Statement[None] = Statement(
    lambda: (
        update(CHATS)
        .where(C.channel == bindparam("account"), C.chat == bindparam("id"))
        .values(code=null(), code_expires_at=null())
    )
)

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


def request_pairing(tx: Transaction, channel: str, sender_id: str, name: str) -> str | None:
    """The pairing code to send to an unpaired person; None if they get no reply."""
    if is_owner(tx.settings, channel, sender_id):
        return None
    sender = find_sender(tx, channel, sender_id)
    if sender is not None and (sender.tier is not None or _told(tx, sender.told_at)):
        return None
    code = _new_code(tx, channel)
    if code is None:
        return None
    add_sender(tx, channel, sender_id, name)
    sender = tx.one(LOCK_SENDER, {"account": channel, "id": sender_id})
    if sender is None or sender.tier is not None or _told(tx, sender.told_at):
        return None
    shown = check_name(tx, name)
    _write_code(tx, SET_SENDER_CODE, channel, sender_id, shown, code)
    shown = shown or sender_id
    event = PairingAsked(channel=channel, name=shown, sender_id=sender_id, chat=None)
    append_event(tx, event)
    return code


def request_group(tx: Transaction, channel: str, chat: str, name: str) -> str | None:
    """The pairing code to send to a group that is not allowed; None if it gets no reply."""
    found = find_chat(tx, channel, chat)
    if found is not None and (found.access is not None or _told(tx, found.told_at)):
        return None
    code = _new_code(tx, channel)
    if code is None:
        return None
    add_chat(tx, channel, chat, direct=False)
    found = tx.one(LOCK_CHAT, {"account": channel, "id": chat})
    if found is None or found.access is not None or _told(tx, found.told_at):
        return None
    shown = check_name(tx, name)
    _write_code(tx, SET_CHAT_CODE, channel, chat, shown, code)
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
    if health.locked_until is not None and health.locked_until > tx.now:
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
    allow_group(tx, channel, request.id, access, by)
    return find_chat(tx, channel, request.id)


def deny(tx: Transaction, channel: str, code: str) -> PairingRequest | None:
    """End the request with this code; None if there is none. The sender is not told."""
    lock_health(tx, channel)
    request = _find_request(tx, channel, code)
    if request is not None:
        clear = CLEAR_CHAT_CODE if request.group else CLEAR_SENDER_CODE
        tx.write(clear, {"account": channel, "id": request.id})
    return request


def _find_request(tx: Transaction, channel: str, code: str) -> PairingRequest | None:
    """The request with this code, however it was typed."""
    typed = "".join(each for each in code.upper() if each.isascii() and each.isalnum())
    for request in list_waiting(tx, channel):
        if hmac.compare_digest(request.code, typed):
            return request
    return None


def _told(tx: Transaction, told_at: int | None) -> bool:
    """Whether a reply was sent within the hour."""
    return told_at is not None and told_at > tx.now - REPLY_INTERVAL


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


def _write_code(
    tx: Transaction, statement: Statement[None], channel: str, id_: str, name: str, code: str
) -> None:
    values = {"account": channel, "id": id_, "new_name": name, "new_code": code}
    tx.write(statement, {**values, "expires": tx.now + CODE_LIFETIME, "now": tx.now})


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
