"""ChannelInfo: a channel, the form of its addresses, its limits and its settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bullpen.core.registry.channel_settings import COMMON_SETTINGS, ChannelSetting


@dataclass(frozen=True, slots=True)
class AddressFormat:
    """The form of a channel's addresses, as regular expressions of their parts."""

    chat: str
    example: str
    thread: str | None = None
    direct: bool = False
    """True if an address is that of a person, and needs no chat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelLimits:
    """The limits of the platform; None is unlimited."""

    text_characters: int | None = None
    """The longest text of one platform message."""
    file_bytes: int | None = None
    """The largest file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelInfo:
    """A channel: a platform on which people write and are answered, or one account on it."""

    name: str
    address: AddressFormat | None = None
    """None accepts every printable address."""
    settings: tuple[ChannelSetting, ...] = ()
    """The settings of each account, in addition to those of every channel."""
    limits: ChannelLimits = ChannelLimits()
    factory: str = ""
    """`module:attribute` of a callable that takes a `ChannelContext` and returns its client.

    Empty if there is no client."""
    manifest: str = ""
    """`module:attribute` of a function that returns the manifest of the platform's app, as JSON.

    It takes the name of the app and the account's settings. Empty if there is no manifest."""
    pull: bool = False
    """True if people fetch their responses, for example with `bullpen response read`.

    Only for built-in channels, because a package's channel delivers responses."""
    account_of: str = ""
    """The platform of an account with a name of its own, such as `slack` of `slack-sage`."""

    @property
    def platform(self) -> str:
        """The name of the platform: `slack`, also for the account `slack-sage`."""
        return self.account_of or self.name

    @property
    def all_settings(self) -> tuple[ChannelSetting, ...]:
        """Its settings, then those of every channel with a client."""
        if self.pull:
            return ()
        own = {each.name for each in self.settings}
        return (*self.settings, *(each for each in COMMON_SETTINGS if each.name not in own))

    @property
    def needs(self) -> tuple[str, ...]:
        """The settings without which no account works."""
        return tuple(each.name for each in self.settings if each.required and each.when is None)

    def setting(self, name: str) -> ChannelSetting | None:
        """The setting of this name."""
        return next((each for each in self.all_settings if each.name == name), None)

    def missing(self, values: Mapping[str, str]) -> list[str]:
        """The required settings that are empty in these values, which include defaults."""
        return [
            each.name
            for each in self.settings
            if each.required and each.applies(values) and not values.get(each.name)
        ]
