"""What people do on Discord: they write, edit, delete, press buttons and use slash commands."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Unpack

from tests.channels.fakes.base import Options
from tests.channels.fakes.discord.chats import (
    APPLICATION,
    CHANNEL,
    FIRST_PERSON,
    ME,
    SERVER,
    Json,
    iso,
)
from tests.channels.fakes.discord.gateway import Gateway


class People(Gateway):
    """The people of a server, also in direct chats; called from any thread."""

    def __init__(self, port: int = 0, **options: Unpack[Options]) -> None:
        super().__init__(port, **options)
        self.interactions: dict[str, list[str]] = {}
        """What became of each interaction, by its id."""
        self._tokens: dict[str, str] = {}

    def say(
        self,
        chat: str,
        person: str,
        text: str,
        *,
        mention: bool = True,
        files: Sequence[tuple[str, bytes]] = (),
        at: int | None = None,
        silent: bool = False,
        **fields: object,
    ) -> str:
        """Write as a person; returns the id. `fields` are further fields of the message."""
        number = int(person) - FIRST_PERSON
        in_server = "guild_id" in self.channels[chat]
        mentions = [{"id": ME, "username": "bot", "bot": True}] if in_server and mention else []
        written = {
            "author": self.person(number),
            "content": f"<@{ME}> {text}" if mentions else text,
            "mentions": mentions,
            **fields,
        }

        async def write() -> str:
            message = self._make(chat, written, files, at)
            self._store(message)
            if not silent:
                await self._dispatch("MESSAGE_CREATE", self._live(message))
            return str(message["id"])

        return self.run(write())

    def redeliver(self, message: str) -> None:
        """Push the event of a message again."""
        self.run(self._dispatch("MESSAGE_CREATE", self._live(self._find(message))))

    def edit(self, message: str, text: str) -> None:
        """Change the text of a message as its author."""
        found = self._find(message)
        mention = f"<@{ME}> " if found["content"].startswith(f"<@{ME}>") else ""
        found["content"] = mention + text
        found["edited_timestamp"] = iso(time.time())
        self.run(self._dispatch("MESSAGE_UPDATE", self._live(found)))

    def preview(self, message: str) -> None:
        """Add the preview of a link to a message: an update without an edit."""
        found = {**self._find(message), "embeds": [{"url": "https://example.org"}]}
        self.run(self._dispatch("MESSAGE_UPDATE", self._live(found)))

    def delete(self, message: str) -> None:
        """Delete a message as its author or a moderator."""
        found = self._find(message)
        self._forget(found["channel_id"], message)
        event = {"id": message, "channel_id": found["channel_id"], **self._server(found)}
        self.run(self._dispatch("MESSAGE_DELETE", event))

    def press(self, message: str, person: str, value: str) -> str:
        """Press a button below a message; returns the id of the interaction."""
        found = self._find(message)
        data = {"component_type": 2, "custom_id": value}
        return self._interact(found["channel_id"], person, 3, data, {"message": found})

    def command(self, chat: str, person: str, name: str, text: str = "") -> str:
        """Use a slash command; returns the id of the interaction."""
        options = [{"type": 3, "name": "text", "value": text}] if text else []
        data = {"id": "1", "name": name, "type": 1, "options": options}
        return self._interact(chat, person, 2, data, {})

    def _interact(self, chat: str, person: str, kind: int, data: Json, more: Json) -> str:
        interaction = self._next_id()
        token = f"interaction-token-{interaction}"
        self.interactions[interaction] = ["pending"]
        self._tokens[token] = interaction
        author = self.person(int(person) - FIRST_PERSON)
        channel = self.channels[chat]
        who: Json = {"user": author}
        if "guild_id" in channel:
            who = {"member": {"user": author, "roles": []}, "guild_id": channel["guild_id"]}
        event = {
            **{"id": interaction, "application_id": APPLICATION, "type": kind, "data": data},
            **{"channel_id": chat, "token": token, "version": 1, **who, **more},
        }
        self.run(self._dispatch("INTERACTION_CREATE", event))
        return interaction

    def add_channel(self, name: str) -> str:
        """Add a channel to the server."""
        channel: Json = {
            "id": str(int(CHANNEL) + 100 + len(self.channels)),
            "type": 0,
            "name": name,
        }
        self.channels[channel["id"]] = {**channel, "guild_id": SERVER}
        self.remember({"channel": self.channels[channel["id"]]})
        self.push("CHANNEL_CREATE", self.channels[channel["id"]])
        return str(channel["id"])
