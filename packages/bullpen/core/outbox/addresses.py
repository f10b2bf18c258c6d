"""Delivery addresses: a channel, and a person or chat in the format of that channel."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bullpen.core.errors import BadPlace
from bullpen.core.message import SCHEDULE, ReplyTo
from bullpen.core.registry import CHANNELS, AddressFormat, ChannelInfo
from bullpen.core.settings import Settings
from bullpen.core.text import describe_unknown

NOWHERE_TEXT = "nowhere"
OWNER = "owner"


@dataclass(frozen=True, slots=True)
class DeliveryAddress:
    """The address of a response."""

    channel: str
    sender_id: str | None = None
    reply_to: ReplyTo | None = None

    @property
    def nowhere(self) -> bool:
        """Whether no person receives the response."""
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
        known = sorted((*CHANNELS.built_in, *CHANNELS.plugin_names()))
        raise BadPlace(
            describe_unknown("channel", channel, known),
            hint="Use a channel and an address on it, for example `telegram:123456789`, or"
            f" `nowhere`. Channels: {', '.join(known)}.",
        )
    if isinstance(info, ChannelInfo) and info.address is not None:
        return _parse_with_format(channel, address, info.address)
    # The format is unknown if the channel's package is not installed here; it may run elsewhere.
    if not address.isprintable():
        raise BadPlace(f"invalid address {address[:60]!r} for {channel}")
    return DeliveryAddress(channel, address or None, ReplyTo(chat=address) if address else None)


def owner_address(settings: Settings) -> DeliveryAddress:
    """The owner's address, from the settings."""
    return DeliveryAddress(settings.owner_channel, settings.owner_id or None)


def _check_owner(settings: Settings) -> None:
    """Raise `BadPlace` if the owner's address in the settings is invalid."""
    try:
        make_address(settings.owner_channel, settings.owner_id)
    except BadPlace as error:
        hint = "Correct the settings `owner_channel` and `owner_id`."
        raise BadPlace(f"the owner's address is invalid: {error}", hint=hint) from None


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
            f"invalid address {address[:60]!r} for {channel}",
            hint=f"Use {address_format.example}.",
        )
    if address_format.direct:
        return DeliveryAddress(channel, chat or None)
    return DeliveryAddress(channel, chat, ReplyTo(chat=chat, thread=thread))
