"""What Discord keeps: one server with its channels, direct chats, their messages and files."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack
from urllib.parse import quote

from tests.channels.fakes.base import FakePlatform, Options
from tests.channels.fakes.post import Post

API = "/api/v10"
EPOCH_MS = 1_420_070_400_000
ME = "900000000000000001"
APPLICATION = "900000000000000002"
SERVER = "800000000000000001"
CHANNEL = "700000000000000001"
OTHER_CHANNEL = "700000000000000002"
THREAD = "700000000000000003"
FIRST_DIRECT = 600_000_000_000_000_000
FIRST_PERSON = 500_000_000_000_000_000
TOKEN = "fake.discord.token"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DiscordPost(Post):
    """A message of the bot in a chat of Discord."""

    pings: bool = False
    """Whether it notifies everybody in the channel."""


class Chats(FakePlatform):
    """The chats of one bot."""

    def __init__(self, port: int = 0, **options: Unpack[Options]) -> None:
        super().__init__(port, **options)
        self.token = TOKEN
        self.messages: dict[str, list[Json]] = {}
        self.channels: dict[str, Json] = {
            CHANNEL: {"id": CHANNEL, "type": 0, "name": "general", "guild_id": SERVER},
            OTHER_CHANNEL: {"id": OTHER_CHANNEL, "type": 0, "name": "other", "guild_id": SERVER},
            THREAD: {
                **{"id": THREAD, "type": 11, "name": "release", "guild_id": SERVER},
                "parent_id": CHANNEL,
            },
        }
        self.files: dict[str, bytes] = {}
        self.signed_for = 86_400.0
        """For how many seconds the URLs of files are valid."""
        self._nonces: dict[str, tuple[float, str, str]] = {}
        self._deleted: set[str] = set()
        self._last_id = 0

    def person(self, number: int) -> Json:
        """A person, as an author."""
        return {
            **{"id": str(FIRST_PERSON + number), "username": f"person{number}"},
            **{"global_name": f"Person {number}", "discriminator": "0", "avatar": None},
        }

    def direct_chat(self, person: str) -> str:
        """The direct chat of a person with the bot."""
        chat = str(FIRST_DIRECT + int(person) - FIRST_PERSON)
        if chat not in self.channels:
            channel = {"id": chat, "type": 1, "recipients": [{"id": person}]}
            self.channels[chat] = channel
            self.remember({"channel": channel})
        return chat

    def posts(self, chat: str) -> list[str]:
        """The texts of the bot in a chat; a file is its name."""
        return [each.text or each.file for each in self.parts(chat)]

    def parts(self, chat: str) -> list[DiscordPost]:
        """The messages of the bot in a chat."""
        return [
            DiscordPost(
                each["id"],
                each["content"],
                each["attachments"][0]["filename"] if each["attachments"] else "",
                chat if self.channels[chat]["type"] == 11 else "",
                each.get("pings", False),
            )
            for each in self.messages.get(chat, [])
            if each["author"]["id"] == ME
        ]

    def recall(self, record: dict[str, Any]) -> None:
        if "deleted" in record:
            self._forget(record["chat"], record["deleted"])
            return
        if "channel" in record:
            self.channels[record["channel"]["id"]] = record["channel"]
            return
        message = record["message"]
        self.messages.setdefault(message["channel_id"], []).append(message)
        self._last_id = max(self._last_id, int(message["id"]))
        if "nonce" in message:
            found = (record["at"], message["channel_id"], message["id"])
            self._nonces[message["nonce"]] = found

    def _next_id(self, at: int | None = None) -> str:
        moment = int(time.time() * 1000) if at is None else at
        found = (moment - EPOCH_MS) << 22
        if at is None:
            found = max(found, self._last_id + 1)
            self._last_id = found
        else:
            found += len(self.files) + sum(map(len, self.messages.values()))
        return str(found)

    def _me(self) -> Json:
        return {
            **{"id": ME, "username": "bullpen", "discriminator": "0", "avatar": None, "bot": True},
            **{"global_name": None, "mfa_enabled": False, "verified": True, "flags": 0},
        }

    def _make(
        self, chat: str, fields: Json, files: Sequence[tuple[str, bytes]], at: int | None = None
    ) -> Json:
        message = self._next_id(at)
        return {
            **{"id": message, "channel_id": chat, "type": 0, "tts": False, "pinned": False},
            **{"timestamp": iso(time.time()), "edited_timestamp": None, "flags": 0, "embeds": []},
            **{"mention_everyone": False, "mentions": [], "mention_roles": [], "components": []},
            "attachments": [self._attach(chat, name, data) for name, data in files],
            **fields,
        }

    def _attach(self, chat: str, name: str, data: bytes) -> Json:
        file = self._next_id()
        self.files[file] = data
        return {
            **{"id": file, "filename": name, "size": len(data)},
            "content_type": "application/octet-stream",
            "path": f"/attachments/{chat}/{file}/{quote(name, safe='')}",
        }

    def _signed(self, message: Json) -> Json:
        """A message with fresh URLs of its files."""
        until = f"?ex={int(time.time() + self.signed_for):x}&is=1&hm=1"
        attachments = [
            {**each, "url": f"{self.url}{each['path']}{until}"} for each in message["attachments"]
        ]
        return {**message, "attachments": attachments}

    def _server(self, message: Json) -> Json:
        channel = self.channels[message["channel_id"]]
        return {"guild_id": channel["guild_id"]} if "guild_id" in channel else {}

    def _live(self, message: Json) -> Json:
        server = self._server(message)
        member: Json = {"member": {"nick": None, "roles": []}} if server else {}
        return {**self._signed(message), **server, **member}

    def _stored(self, message: Json) -> Json:
        """A message as the history has it: without its nonce and its server."""
        return {key: value for key, value in self._signed(message).items() if key != "nonce"}

    def _store(self, message: Json) -> None:
        kept = self.messages.setdefault(message["channel_id"], [])
        kept.append(message)
        kept.sort(key=lambda each: int(each["id"]))
        self.remember({"message": message, "at": time.time()})

    def _forget(self, chat: str, message: str) -> None:
        self._deleted.add(message)
        self.messages[chat] = [each for each in self.messages[chat] if each["id"] != message]
        self.remember({"deleted": message, "chat": chat})

    def _find(self, message: str) -> Json:
        return next(
            each for kept in self.messages.values() for each in kept if each["id"] == message
        )


def iso(at: float) -> str:
    """A time as Discord writes it."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + f".{int(at % 1 * 1e6):06d}+00:00"
