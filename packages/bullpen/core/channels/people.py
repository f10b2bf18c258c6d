"""People and groups on every channel: the lists of them, and the decisions of the owner."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlalchemy import Select, bindparam, false, null, select, true

from bullpen.core.channels.chats import Access, allow_group, forbid_group
from bullpen.core.channels.pairing import approve_group, is_code
from bullpen.core.channels.senders import Tier, is_owner, revoke, set_tier
from bullpen.core.errors import BadPlace, IllegalMove, ServiceFailed, UnknownCode, UnknownSender
from bullpen.core.models import CHATS, SENDERS
from bullpen.core.registry import CHANNELS, ChannelInfo
from bullpen.core.settings import Settings
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

C, S = CHATS.c, SENDERS.c


@dataclass(frozen=True, slots=True)
class PairingRecord:
    """A person or a group on a channel, paired or not."""

    channel: str
    id: str
    """The id of the sender, or of the chat."""
    name: str
    group: bool
    tier: str | None
    """The tier of a person, or the access of a group; None if it is unpaired."""
    code: str | None
    """The code of a request that waits for approval."""
    code_expires_at: int | None
    first_at: int
    last_at: int | None
    approved_at: int | None
    approved_by: str | None

    def waits(self, now: int) -> bool:
        """Whether it waits for approval."""
        return self.code is not None and (self.code_expires_at or 0) > now


def _people() -> Select[tuple[object, ...]]:
    return select(
        *(S.channel, S.sender_id, S.name, false(), S.tier, S.code, S.code_expires_at),
        *(S.first_at, S.last_at, S.approved_at, S.approved_by),
    )


def _groups() -> Select[tuple[object, ...]]:
    return select(
        *(C.channel, C.chat, C.name, true(), C.access, C.code, C.code_expires_at),
        *(C.created_at, C.last_in_at, null(), C.allowed_by),
    )


# The index has the rows with a code only; those are few.
SELECT_WAITING_PEOPLE: Statement[PairingRecord] = Statement(
    lambda: _people().where(S.code.is_not(None), S.code_expires_at > bindparam("now")),
    PairingRecord,
)
SELECT_WAITING_GROUPS: Statement[PairingRecord] = Statement(
    lambda: _groups().where(C.code.is_not(None), C.code_expires_at > bindparam("now")),
    PairingRecord,
)

SELECT_PEOPLE: Statement[PairingRecord] = Statement(
    lambda: (
        _people()
        .where(S.channel == bindparam("account"), S.tier.is_not(None))
        .order_by(S.sender_id)
        .limit(bindparam("limit"))
    ),
    PairingRecord,
)
SELECT_GROUPS: Statement[PairingRecord] = Statement(
    lambda: (
        _groups()
        .where(C.channel == bindparam("account"), C.access.is_not(None))
        .order_by(C.chat)
        .limit(bindparam("limit"))
    ),
    PairingRecord,
)
SELECT_PERSON: Statement[PairingRecord] = Statement(
    lambda: _people().where(S.channel == bindparam("account"), S.sender_id == bindparam("id")),
    PairingRecord,
)
SELECT_GROUP: Statement[PairingRecord] = Statement(
    lambda: _groups().where(
        C.channel == bindparam("account"), C.chat == bindparam("id"), ~C.direct
    ),
    PairingRecord,
)


def list_waiting_pairings(tx: Transaction) -> list[PairingRecord]:
    """The requests of every channel that wait for approval, the oldest first."""
    now = {"now": tx.now}
    found = [*tx.all(SELECT_WAITING_PEOPLE, now), *tx.all(SELECT_WAITING_GROUPS, now)]
    return sorted(found, key=lambda each: each.code_expires_at or 0)


def list_pairings(tx: Transaction, channel: str, limit: int = 1000) -> list[PairingRecord]:
    """The people with a tier and the approved groups of one channel."""
    values = {"account": channel, "limit": limit}
    return [*tx.all(SELECT_PEOPLE, values), *tx.all(SELECT_GROUPS, values)]


def find_pairing(tx: Transaction, channel: str, id_: str) -> PairingRecord | None:
    """The person with this id, else the group."""
    values = {"account": channel, "id": id_}
    return tx.one(SELECT_PERSON, values) or tx.one(SELECT_GROUP, values)


def find_request(tx: Transaction, code: str) -> PairingRecord:
    """The request with this code, however it is typed; raises UnknownCode if there is none."""
    for each in list_waiting_pairings(tx):
        if is_code(each.code, code):
            return each
    raise UnknownCode(f"no pairing request has the code {code[:20]!r}, or it has expired")


def approve_request(
    tx: Transaction, code: str, tier: Tier, by: str, *, access: Access = Access.MEMBERS
) -> PairingRecord:
    """Approve the person or the group with this code; returns it as it is now."""
    request = find_request(tx, code)
    if request.group:
        approve_group(tx, request.channel, request.id, access, by)
    else:
        set_tier(tx, request.channel, request.id, tier, by)
    return _get_pairing(tx, request.channel, request.id)


def change_tier(tx: Transaction, channel: str, id_: str, tier: Tier, by: str) -> PairingRecord:
    """Give a person a tier, with or without a pairing before."""
    _require_other(tx, channel, id_, "has the tier owner")
    if find_pairing(tx, channel, id_) is None:
        check_person_id(channel, id_)
    set_tier(tx, channel, id_, tier, by)
    return _get_pairing(tx, channel, id_)


def change_access(
    tx: Transaction, channel: str, id_: str, access: Access, by: str
) -> PairingRecord:
    """Choose who is answered in a group."""
    if not allow_group(tx, channel, id_, access, by):
        raise _unknown(channel, id_)
    return _get_pairing(tx, channel, id_)


def unpair(tx: Transaction, channel: str, id_: str, by: str) -> None:
    """Make a person or a group unpaired; a request that waits ends."""
    _require_other(tx, channel, id_, "cannot be unpaired")
    if not revoke(tx, channel, id_, by) and not forbid_group(tx, channel, id_, by):
        raise _unknown(channel, id_)


def check_person_id(channel: str, id_: str) -> None:
    """Raise BadPlace if no person on this channel can have this id, such as a name."""
    info = CHANNELS.find(channel)
    if not isinstance(info, ChannelInfo) or info.address is None:
        return
    # On a package's channel, the ids of people may differ from those of chats.
    is_known = info.address.direct or info.platform in CHANNELS.built_in
    if is_known and not re.fullmatch(info.address.chat, id_):
        raise BadPlace(
            f"invalid id {id_[:60]!r} of a person on {channel}",
            hint="After they have written, `bullpen pairing list` shows their id.",
        )


def how_to_pair(settings: Settings, channel: str) -> str:
    """The sentence that says how the owner is paired on a channel."""
    number = settings.account(channel).get("number")
    return f"Write to {number or 'the bot'}, then: bullpen pairing approve CODE --tier owner"


def find_owner(tx: Transaction, channel: str) -> str:
    """The id of the owner on a channel: that of the settings, or a person with the tier owner."""
    settings = tx.settings
    if settings.owner_channel == channel and settings.owner_id:
        return settings.owner_id
    for each in list_pairings(tx, channel):
        if each.tier == Tier.OWNER and not each.group:
            return each.id
    raise ServiceFailed(
        f"no owner is known on {channel}",
        hint=how_to_pair(settings, channel),
    )


def _require_other(tx: Transaction, channel: str, id_: str, text: str) -> None:
    if is_owner(tx.settings, channel, id_):
        raise IllegalMove(
            f"{id_} is owner_id in the settings and {text}",
            hint="Change it with: bullpen config set owner_channel CHANNEL owner_id ID",
        )


def _get_pairing(tx: Transaction, channel: str, id_: str) -> PairingRecord:
    found = find_pairing(tx, channel, id_)
    if found is None:
        raise _unknown(channel, id_)
    return found


def _unknown(channel: str, id_: str) -> UnknownSender:
    return UnknownSender(f"neither a person nor a group has the id {id_[:60]!r} on {channel}")
