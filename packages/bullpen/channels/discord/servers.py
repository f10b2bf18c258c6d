"""The channels and threads of the servers that the bot is in, as the gateway tells them."""

from __future__ import annotations

from dataclasses import dataclass, field

from bullpen.channels.discord.events import Data, objects_of, text_of
from bullpen.core.clock import SECOND, Clock

SNAPSHOT_SECONDS = 60.0

_WITH_TEXT = frozenset({0, 2, 5, 10, 11, 12})
"""Types of channels with messages: text, voice, announcements and three kinds of threads."""


@dataclass(frozen=True, slots=True)
class ServerChannel:
    """A channel or thread of a server."""

    server: str
    name: str
    parent: str


@dataclass(slots=True)
class Servers:
    """All servers of one bot."""

    clock: Clock
    names: dict[str, str] = field(default_factory=dict)
    channels: dict[str, ServerChannel] = field(default_factory=dict)
    _newest: dict[str, tuple[int, int]] = field(default_factory=dict)

    def clear(self) -> None:
        """Forget everything: a new session tells it all again."""
        self.names.clear()
        self.channels.clear()
        self._newest.clear()

    def add_server(self, data: Data) -> None:
        """Take in all channels and active threads of a server."""
        server = text_of(data, "id")
        self.names[server] = text_of(data, "name")
        for each in (*objects_of(data, "channels"), *objects_of(data, "threads")):
            self.add_channel({**each, "guild_id": server})
            last = text_of(each, "last_message_id")
            if last.isdecimal():
                self._newest[text_of(each, "id")] = int(last), self.clock.monotonic()

    def add_channel(self, data: Data) -> bool:
        """Take in a channel or thread; whether it is a known one with another name."""
        server = text_of(data, "guild_id")
        if data.get("type") not in _WITH_TEXT or not server:
            return False
        channel = ServerChannel(server, text_of(data, "name"), text_of(data, "parent_id"))
        before = self.channels.get(text_of(data, "id"))
        self.channels[text_of(data, "id")] = channel
        return before is not None and before.name != channel.name

    def of(self, server: str) -> list[str]:
        """The channels and threads of a server."""
        return [key for key, each in self.channels.items() if each.server == server]

    def remove_channel(self, channel: str) -> None:
        """Forget a channel or thread."""
        self.channels.pop(channel, None)

    def name(self, channel: str) -> str:
        """The name of a channel with its server's, for people; empty if it is not known."""
        found = self.channels.get(channel)
        if found is None:
            return ""
        server = self.names.get(found.server, "")
        return f"#{found.name} ({server})" if server else f"#{found.name}"

    def newest(self, channel: str) -> int | None:
        """The newest message at the start of the session, told once and only shortly after it."""
        found = self._newest.pop(channel, None)
        if found is None or self.clock.monotonic() - found[1] > SNAPSHOT_SECONDS * SECOND:
            return None
        return found[0]
