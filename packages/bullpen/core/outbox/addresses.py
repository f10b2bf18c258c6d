"""A place for an answer: a channel, and an address as that channel writes it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.metadata import entry_points

from bullpen.core.errors import BadPlace
from bullpen.core.message import SCHEDULE, ReplyTo
from bullpen.core.settings import Settings

CHANNEL_ENTRY_POINTS = "bullpen.channels"
"""The entry points of channels that others make: their addresses are their own business."""

# Half a surrogate pair is no text.
_ANY_NAME = re.compile(r"[^\s/\x00-\x1f\x7f\ud800-\udfff]{0,200}")
_PHONE_NUMBER = re.compile(r"\+[1-9]\d{6,14}")


@dataclass(frozen=True, slots=True)
class AddressFormat:
    """What a channel's addresses look like; `chat` and `thread` are parts of it."""

    chat: re.Pattern[str]
    example: str
    thread: re.Pattern[str] | None = None
    direct: bool = False
    """True if nothing has to be known besides who it is for."""


ADDRESS_FORMATS = {
    "slack": AddressFormat(
        re.compile(r"[CDGUW][A-Z0-9]{5,20}"),
        "slack:C0123456789 or slack:C0123456789/1700000000.000100",
        re.compile(r"\d{6,12}\.\d{1,9}"),
    ),
    "telegram": AddressFormat(
        re.compile(r"-?[1-9]\d{0,18}"), "telegram:123456789", re.compile(r"[1-9]\d{0,18}")
    ),
    "discord": AddressFormat(re.compile(r"\d{15,20}"), "discord:123456789012345678"),
    "sms": AddressFormat(_PHONE_NUMBER, "sms:+491701234567", direct=True),
    "whatsapp": AddressFormat(_PHONE_NUMBER, "whatsapp:+491701234567", direct=True),
    "web": AddressFormat(_ANY_NAME, "web:ann", direct=True),
    "cli": AddressFormat(_ANY_NAME, "cli:owner", direct=True),
    "api": AddressFormat(_ANY_NAME, "api:ann", direct=True),
}

NOWHERE_TEXT = "nowhere"
OWNER = "owner"


@dataclass(frozen=True, slots=True)
class DeliveryAddress:
    """Where an answer goes."""

    channel: str
    sender_id: str | None = None
    reply_to: ReplyTo | None = None

    @property
    def nowhere(self) -> bool:
        """Whether nobody is told."""
        return self.channel == SCHEDULE

    def __str__(self) -> str:
        if self.nowhere:
            return NOWHERE_TEXT
        if self.reply_to is None:
            return f"{self.channel}:{self.sender_id}" if self.sender_id else self.channel
        thread = f"/{self.reply_to.thread}" if self.reply_to.thread else ""
        return f"{self.channel}:{self.reply_to.chat}{thread}"


NOWHERE = DeliveryAddress(SCHEDULE)


def parse_address(text: str, settings: Settings) -> DeliveryAddress:
    """The place that somebody names: `channel:address`, `channel`, `owner` or `nowhere`."""
    if text == NOWHERE_TEXT:
        return NOWHERE
    if text == OWNER:
        _check_owner(settings)
        return owner_address(settings)
    channel, _, address = text.partition(":")
    return make_address(channel, address)


def make_address(channel: str, address: str) -> DeliveryAddress:
    """An address on a channel, which must be of that channel's form."""
    form = ADDRESS_FORMATS.get(channel)
    if form is None:
        return _plugin_address(channel, address)
    chat, slash, thread = address.partition("/")
    in_thread = form.thread is not None and form.thread.fullmatch(thread) is not None
    if not form.chat.fullmatch(chat) or (slash and not in_thread):
        raise BadPlace(
            f"{channel} cannot read the address {address[:60]!r}", hint=f"Give {form.example}."
        )
    if form.direct:
        return DeliveryAddress(channel, chat or None)
    return DeliveryAddress(channel, chat, ReplyTo(chat=chat, thread=thread))


def owner_address(settings: Settings) -> DeliveryAddress:
    """Where the owner is told things."""
    return DeliveryAddress(settings.owner_channel, settings.owner_id or None)


def _check_owner(settings: Settings) -> None:
    """Refuse an owner whom the settings describe as no channel can read it."""
    try:
        make_address(settings.owner_channel, settings.owner_id)
    except BadPlace as error:
        hint = "Correct the settings owner_channel and owner_id, as `telegram` and `123456789`."
        raise BadPlace(f"nobody can tell the owner anything: {error}", hint=hint) from None


def _plugin_address(channel: str, address: str) -> DeliveryAddress:
    if (
        any(point.name == channel for point in entry_points(group=CHANNEL_ENTRY_POINTS))
        and address.isprintable()
    ):
        return DeliveryAddress(channel, address or None, ReplyTo(chat=address) if address else None)
    known = ", ".join(sorted(ADDRESS_FORMATS))
    raise BadPlace(
        f"there is no channel {channel[:60]!r}",
        hint="Give a channel and an address on it, as `telegram:123456789`, or `nowhere`. "
        f"The channels are {known}.",
    )
