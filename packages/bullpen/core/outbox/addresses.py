"""The address that an answer goes to: a channel, and a person or chat as that channel writes it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bullpen.core.errors import BadPlace
from bullpen.core.message import SCHEDULE, ReplyTo
from bullpen.core.registry import CHANNELS, AddressFormat, ChannelInfo
from bullpen.core.settings import Settings

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
        """Whether no person gets the answer."""
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
    """Parse `channel:address`, `channel`, `owner` or `nowhere`."""
    if text == NOWHERE_TEXT:
        return NOWHERE
    if text == OWNER:
        _check_owner(settings)
        return owner_address(settings)
    channel, _, address = text.partition(":")
    return make_address(channel, address)


def make_address(channel: str, address: str) -> DeliveryAddress:
    """An address on a channel, which must have that channel's format."""
    info = CHANNELS.find(channel)
    if info is None:
        known = ", ".join(sorted((*CHANNELS.built_in, *CHANNELS.plugin_names())))
        raise BadPlace(
            f"there is no channel {channel[:60]!r}",
            hint="Give a channel and an address on it, as `telegram:123456789`, or `nowhere`. "
            f"The channels are {known}.",
        )
    if isinstance(info, ChannelInfo) and info.address is not None:
        return _parse_with_format(channel, address, info.address)
    # The format is unknown if the channel's package cannot be loaded here: it may run elsewhere.
    if not address.isprintable():
        raise BadPlace(f"{channel} cannot read the address {address[:60]!r}")
    return DeliveryAddress(channel, address or None, ReplyTo(chat=address) if address else None)


def owner_address(settings: Settings) -> DeliveryAddress:
    """Where the owner gets notices, by the settings."""
    return DeliveryAddress(settings.owner_channel, settings.owner_id or None)


def _check_owner(settings: Settings) -> None:
    """Raise an error if the channel cannot read the owner's address in the settings."""
    try:
        make_address(settings.owner_channel, settings.owner_id)
    except BadPlace as error:
        hint = "Correct the settings owner_channel and owner_id, as `telegram` and `123456789`."
        raise BadPlace(f"nobody can tell the owner anything: {error}", hint=hint) from None


def _parse_with_format(
    channel: str, address: str, address_format: AddressFormat
) -> DeliveryAddress:
    chat, slash, thread = address.partition("/")
    in_thread = (
        address_format.thread is not None
        and re.fullmatch(address_format.thread, thread) is not None
    )
    if not re.fullmatch(address_format.chat, chat) or (slash and not in_thread):
        raise BadPlace(
            f"{channel} cannot read the address {address[:60]!r}",
            hint=f"Give {address_format.example}.",
        )
    if address_format.direct:
        return DeliveryAddress(channel, chat or None)
    return DeliveryAddress(channel, chat, ReplyTo(chat=chat, thread=thread))
