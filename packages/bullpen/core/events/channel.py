"""Events of channels, and of the people on them."""

from __future__ import annotations

from bullpen.core.events.base import Level, note
from bullpen.core.events.system import SystemEvent


class ChannelEvent(SystemEvent):
    """An event about a channel."""

    channel: str

    @property
    def who(self) -> str:
        """The channel."""
        return self.channel


class ChannelUp(ChannelEvent):
    """A channel is connected"""

    type = "channel_up"
    says = "is up"
    bookkeeping = True


class ChannelDown(ChannelEvent):
    """A channel does not work"""

    type = "channel_down"
    level = Level.FAILURE
    says = "is down"
    code: str
    reason: str
    hint: str


class ChannelPaused(ChannelEvent):
    """A channel was paused: it neither receives nor sends"""

    type = "channel_paused"
    level = Level.WARNING
    says = "was paused"


class ChannelResumed(ChannelEvent):
    """A channel was resumed"""

    type = "channel_resumed"
    says = "was resumed"


class PairingAsked(ChannelEvent):
    """An unpaired person or group wrote to the bot and got a pairing code"""

    type = "pairing_asked"
    level = Level.WARNING
    says = "{name} asked for pairing"
    name: str
    sender_id: str | None
    chat: str | None = note("the group, if it is one")


class PairingApproved(ChannelEvent):
    """A person or a group was approved, or the tier of a person was changed"""

    type = "pairing_approved"
    level = Level.NOTICE
    says = "{name} was approved as {tier}"
    name: str
    tier: str = note("a tier, or the access of a group")
    sender_id: str | None
    chat: str | None
    by: str


class PairingRevoked(ChannelEvent):
    """A person or a group was removed and needs a new pairing"""

    type = "pairing_revoked"
    level = Level.NOTICE
    says = "{name} is unpaired"
    name: str
    sender_id: str | None
    chat: str | None
    by: str


class PairingLocked(ChannelEvent):
    """Wrong pairing codes were entered; no code is accepted for an hour"""

    type = "pairing_locked"
    level = Level.WARNING
    says = "accepts no pairing code for an hour after {attempts} wrong ones"
    attempts: int


class SenderBlocked(ChannelEvent):
    """A person was blocked: their messages are ignored"""

    type = "sender_blocked"
    level = Level.NOTICE
    says = "{name} was blocked"
    name: str
    sender_id: str
    by: str
