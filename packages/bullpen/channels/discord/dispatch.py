"""The events of the gateway: messages go into intake, others change the list of channels."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial

from bullpen.channels.discord.events import Data, event_payload, object_of, objects_of, text_of
from bullpen.channels.discord.interactions import Interactions
from bullpen.channels.discord.servers import Servers
from bullpen.channels.platform import Intake

SERVERS_SECONDS = 2.0
"""How long the channels of the servers are waited for after the start of a session."""
MAX_AUTHORS = 5_000
"""How many messages are remembered with their authors."""


class Dispatch:
    """The events of one connection to the gateway."""

    def __init__(self, intake: Intake, servers: Servers, interactions: Interactions) -> None:
        self._intake = intake
        self._servers = servers
        self._interactions = interactions
        self._authors: OrderedDict[str, Data] = OrderedDict()
        self._expected: set[str] = set()
        self._announcing: asyncio.TimerHandle | None = None
        self.heard = intake.heard
        self.handlers: Mapping[str, Callable[[Data], object]] = {
            "READY": self._begin,
            "RESUMED": self._resume,
            "GUILD_CREATE": self._add_server,
            "GUILD_DELETE": self._remove_server,
            "CHANNEL_CREATE": self._add_channel,
            "CHANNEL_UPDATE": self._change_channel,
            "CHANNEL_DELETE": self._remove_channel,
            "THREAD_CREATE": self._add_channel,
            "THREAD_UPDATE": self._change_channel,
            "THREAD_DELETE": self._remove_channel,
            "THREAD_LIST_SYNC": self._add_threads,
            "MESSAGE_CREATE": self._add_message,
            "MESSAGE_UPDATE": partial(self._add, "MESSAGE_UPDATE"),
            "MESSAGE_DELETE": self._delete_message,
            "MESSAGE_DELETE_BULK": self._delete_messages,
            "INTERACTION_CREATE": self._interact,
        }
        """What takes the events, by their name."""

    def lost(self, reason: str) -> None:
        """The connection ended, and another one follows."""
        self.stop()
        self._intake.disconnected(reason)

    def stop(self) -> None:
        """Cancel the timer."""
        if self._announcing is not None:
            self._announcing.cancel()
            self._announcing = None

    def _begin(self, data: Data) -> None:
        """Take the start of a session; its servers follow, one event each."""
        self._servers.clear()
        self._expected = {text_of(each, "id") for each in objects_of(data, "guilds")}
        wait = SERVERS_SECONDS if self._expected else 0
        self._announcing = asyncio.get_running_loop().call_later(wait, self._announce)

    def _resume(self, data: Data) -> None:
        self._announce()

    def _add_server(self, data: Data) -> None:
        self._servers.add_server(data)
        if self._expected:
            self._expected.discard(text_of(data, "id"))
            if not self._expected:
                self._announce()

    def _remove_server(self, data: Data) -> None:
        if data.get("unavailable") is True:  # for now, because of an outage
            return
        server = text_of(data, "id")
        for each in self._servers.of(server):
            self._remove_channel({"id": each, "guild_id": server})
        self._servers.names.pop(server, None)

    def _add_channel(self, data: Data) -> None:
        self._servers.add_channel(data)

    def _add_threads(self, data: Data) -> None:
        for each in objects_of(data, "threads"):
            self._servers.add_channel({**each, "guild_id": data.get("guild_id")})

    def _change_channel(self, data: Data) -> None:
        if self._servers.add_channel(data):
            self._add("CHANNEL_UPDATE", data)

    def _remove_channel(self, data: Data) -> None:
        if name := self._servers.name(text_of(data, "id")):
            self._servers.remove_channel(text_of(data, "id"))
            payload = event_payload("CHANNEL_DELETE", data, direct=False, chat_name=name)
            self._intake.add(payload)

    def _add_message(self, data: Data) -> None:
        self._authors[text_of(data, "id")] = object_of(data.get("author"))
        if len(self._authors) > MAX_AUTHORS:
            self._authors.popitem(last=False)
        self._add("MESSAGE_CREATE", data)

    def _delete_message(self, data: Data) -> None:
        """Take a deletion. Discord does not say whose message it was, nor who deleted it."""
        author = self._authors.pop(text_of(data, "id"), None)
        self._add("MESSAGE_DELETE", data if author is None else {**data, "author": author})

    def _delete_messages(self, data: Data) -> None:
        ids = data.get("ids")
        for each in ids if isinstance(ids, list) else []:
            self._delete_message({**data, "id": each})

    def _interact(self, data: Data) -> None:
        self._interactions.take(data, self._add("INTERACTION_CREATE", data))

    def _announce(self) -> None:
        """Report the connection, once the channels of the servers are known."""
        self._expected.clear()
        self.stop()
        self._intake.connected()

    def _add(self, name: str, data: Data) -> asyncio.Future[None]:
        channel = text_of(data, "channel_id" if "channel_id" in data else "id")
        direct = "guild_id" not in data
        return self._intake.add(
            event_payload(name, data, direct=direct, chat_name=self._servers.name(channel))
        )
