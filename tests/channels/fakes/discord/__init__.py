"""A fake of Discord: its REST interface, its gateway and the files of its messages, on loopback."""

from __future__ import annotations

from tests.channels.fakes.discord.chats import (
    API,
    APPLICATION,
    CHANNEL,
    ME,
    OTHER_CHANNEL,
    SERVER,
    THREAD,
)
from tests.channels.fakes.discord.gateway import MESSAGE_CONTENT
from tests.channels.fakes.discord.harness import DiscordHarness
from tests.channels.fakes.discord.platform import FakeDiscord

__all__ = [
    "API",
    "APPLICATION",
    "CHANNEL",
    "ME",
    "MESSAGE_CONTENT",
    "OTHER_CHANNEL",
    "SERVER",
    "THREAD",
    "DiscordHarness",
    "FakeDiscord",
]
