"""What Twilio pushes: forms of messages and of status callbacks, and the order of statuses."""

from __future__ import annotations

import mimetypes
import re
from collections import OrderedDict
from collections.abc import Mapping
from typing import TypeVar

from bullpen.channels.inbound import (
    Attachment,
    Chat,
    ChatChange,
    Inbound,
    Payload,
    Person,
    Proof,
    Source,
    Written,
)
from bullpen.channels.twilio.errors import undelivered

STOP_WORDS = frozenset(
    {"STOP", "STOPALL", "UNSUBSCRIBE", "CANCEL", "END", "QUIT", "REVOKE", "OPTOUT"}
)
START_WORDS = frozenset({"START", "UNSTOP"})
"""Twilio takes YES as well, but YES is also the answer to a question."""
PHONE_NUMBER = re.compile(r"\+[1-9]\d{6,14}")
MAX_MEDIA = 10
MAX_REPORTS = 10_000

WRITTEN_AT, CURSOR, PART_KEY, CONFLICT = "WrittenAt", "Cursor", "PartKey", "ConflictsWith"
"""Fields that the receiver adds to a form."""

ARRIVED = frozenset({"delivered", "read", "partially_delivered"})
FAILED = frozenset({"undelivered", "failed", "canceled"})
_RANKS = {
    **{"accepted": 0, "scheduled": 0, "queued": 1, "sending": 2, "sent": 3},
    **dict.fromkeys(ARRIVED | FAILED, 4),
    "read": 5,
}
Value = TypeVar("Value")

_MEDIA = re.compile(r"/Messages/([A-Z]{2}[0-9a-f]{32})/Media/(ME[0-9a-f]{32})$")


def parse_message(payload: Payload, prefix: str, own: str, now: int) -> Inbound | None:
    """What a message says; None if it cannot be answered or says nothing."""
    form = {name: value for name, value in payload.items() if isinstance(value, str)}
    sid, sender = form.get("MessageSid", ""), form.get("From", "")
    number = sender.removeprefix(prefix)
    if not sid or sender == own or not PHONE_NUMBER.fullmatch(number):
        return None  # a short code, or a name as the sender, cannot be answered
    name = form.get("ProfileName", "")
    chat = Chat(id=number, direct=True, name=name)
    body = form.get("Body", "")
    kind = form.get("OptOutType", "") or _opt_out(body)
    if kind in ("STOP", "START"):
        return ChatChange(chat=chat, opted_out=kind == "STOP", keys=(sid,))
    attachments = _attachments(form)
    text = body if body.strip() else _location(form)
    if kind == "HELP" or not (text or attachments):
        return None  # Twilio has answered HELP
    at = payload.get(WRITTEN_AT)
    source = Source(
        chat=chat,
        person=Person(id=number, name=name),
        message=sid,
        at=at if isinstance(at, int) else now,
        keys=(sid,),
    )
    return Written(source=source, text=text, attachments=attachments, cursor=form.get(CURSOR, ""))


def parse_report(payload: Payload) -> Proof:
    """The outcome of a part, from its status callback."""
    form = {name: value for name, value in payload.items() if isinstance(value, str)}
    sid, status = form.get("MessageSid", ""), form.get("MessageStatus", "")
    failed = undelivered(form.get("ErrorCode", "")) if status in FAILED else ""
    if other := form.get(CONFLICT):
        failed = f"Twilio reported both {other} and {status}"
    return Proof(key=form[PART_KEY], receipt=sid, failed=failed, keys=(f"{sid}:{status}",))


class Reports:
    """The parts that were sent lately, with their last status, which never goes back.

    Callbacks come in any order, and two processes of Twilio may report different ends.
    """

    def __init__(self) -> None:
        self._statuses: OrderedDict[str, str] = OrderedDict()
        self._parts: OrderedDict[str, tuple[str, int]] = OrderedDict()
        """By SID: the key of the part, and when it was first seen."""

    def is_news(self, sid: str, status: str) -> bool:
        """Whether a status is later than the last one, or contradicts it."""
        last = self._statuses.get(sid)
        if status not in _RANKS or last is None:
            return status in _RANKS
        return _RANKS[status] > _RANKS[last] or bool(self.conflict(sid, status))

    def conflict(self, sid: str, status: str) -> str:
        """The end that was reported before, if this is another one; otherwise empty."""
        last = self._statuses.get(sid, "")
        ends = (last in ARRIVED and status in FAILED) or (last in FAILED and status in ARRIVED)
        return last if ends else ""

    def add(self, key: str, sid: str, status: str, now: int) -> None:
        """Remember a status that was stored."""
        _put(self._statuses, sid, status)
        self.sent(key, sid, now)

    def sent(self, key: str, sid: str, now: int) -> None:
        """Remember a part that Twilio took."""
        _put(self._parts, sid, self._parts.get(sid, (key, now)))

    def sid_of(self, key: str, since: int) -> str:
        """The SID of a part, if it was first seen since then; otherwise empty.

        An earlier one is of an earlier attempt, which a person has repeated.
        """
        found = (sid for sid, (each, at) in self._parts.items() if each == key and at >= since)
        return next(found, "")

    def is_other(self, sid: str, key: str) -> bool:
        """Whether a message is known to be another part."""
        return sid in self._parts and self._parts[sid][0] != key


def _put(values: OrderedDict[str, Value], name: str, value: Value) -> None:
    values[name] = value
    values.move_to_end(name)
    while len(values) > MAX_REPORTS:
        values.popitem(last=False)


def _opt_out(body: str) -> str:
    word = body.strip().upper()
    return "STOP" if word in STOP_WORDS else "START" if word in START_WORDS else ""


def _attachments(form: Mapping[str, str]) -> tuple[Attachment, ...]:
    """The files of a message; their source is the SIDs of the message and the file."""
    found = []
    for index in range(MAX_MEDIA):
        if match := _MEDIA.search(form.get(f"MediaUrl{index}", "")):
            kind = form.get(f"MediaContentType{index}", "")
            name = f"attachment-{index + 1}{mimetypes.guess_extension(kind) or ''}"
            found.append(Attachment(name=name, source=f"{match[1]}/{match[2]}", type=kind))
    return tuple(found)


def _location(form: Mapping[str, str]) -> str:
    """A shared location as text; empty if there is none."""
    if "Latitude" not in form or "Longitude" not in form:
        return ""
    names = [form[each] for each in ("Label", "Address") if form.get(each)]
    return ", ".join([f"Location: {form['Latitude']}, {form['Longitude']}", *names])
