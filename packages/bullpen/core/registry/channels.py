"""CHANNELS: the list of channels, built-in ones and those of packages, and of their accounts.

An account is one bot on a platform, such as `slack-sage` on `slack`. It has the platform's entry
under its own name, a table of settings of its own and a process of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from bullpen.core.registry.built_in_channels import BUILT_IN_CHANNELS
from bullpen.core.registry.channel_info import ChannelInfo
from bullpen.core.registry.entries import SERVICE_NAME, LoadProblem, Registry

ACCOUNT_SUFFIX = r"-[a-z0-9]+(-[a-z0-9]+)*"
"""What an account adds to the name of its platform; no `_`, which is a `-` in variables."""


class ChannelRegistry(Registry[ChannelInfo]):
    """All channels; an account is found under its own name."""

    def find(self, name: str) -> ChannelInfo | LoadProblem | None:
        """The channel of this name, or the platform's entry renamed to this account.

        An account's name is the platform's, extended by `-NAME`; the longest registered name wins.
        """
        if name in self.built_in:
            return self.built_in[name]
        if not re.fullmatch(SERVICE_NAME, name) or name in self._reserved:
            return super().find(name)
        if (platform := _platform_of(name, self._platforms())) is None:
            if (found := super().find(name)) is not None:
                return found
            platform = _platform_of(name, self.plugin_names()) if "-" in name else None
        if platform is None:
            return None
        info = super().find(platform)
        if not isinstance(info, ChannelInfo):
            return info
        return replace(info, name=name, account_of=platform)

    def _platforms(self) -> list[str]:
        return [each.name for each in self.built_in.values() if not each.pull]

    def _refusal(self, name: str) -> str:
        if _platform_of(name, self._platforms()):
            return "it is the name of an account of a built-in channel"
        return super()._refusal(name)


def _platform_of(account: str, platforms: Iterable[str]) -> str | None:
    """The longest of the platforms whose name the account extends."""
    fitting = [
        each
        for each in platforms
        if account.startswith(each) and re.fullmatch(ACCOUNT_SUFFIX, account[len(each) :])
    ]
    return max(fitting, key=len, default=None)


CHANNELS = ChannelRegistry(
    ChannelInfo,
    "bullpen.channels",
    BUILT_IN_CHANNELS,
    names=SERVICE_NAME,
    # Services of Bullpen, channels on which only Bullpen writes, and words of addresses.
    reserved=frozenset(
        {
            *("processor", "scheduler", "guard", "minder", "supervisord", "supervisor", "channel"),
            "reports",
            *("chatroom", "internal", "heartbeat", "schedule", "owner", "nowhere"),
        }
    ),
)
