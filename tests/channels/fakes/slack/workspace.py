"""A workspace of Slack with one app: its chats, their messages and its files."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Unpack, cast
from urllib.parse import quote

from tests.channels.fakes.base import FakePlatform, Options
from tests.channels.fakes.post import Post
from tests.channels.fakes.slack.blocks import Json, plain

BOT_TOKEN = "xoxb-fake-0123456789"
APP_TOKEN = "xapp-fake-0123456789"
SIGNING_SECRET = "0123456789abcdef0123456789abcdef"
TEAM, APP, BOT, BOT_USER = "T0FAKE001", "A0FAKE001", "B0FAKE001", "U0FAKEBOT"


@dataclass(slots=True)
class FakeChat:
    """A channel or direct chat with its messages, in order."""

    id: str
    direct: bool
    name: str = ""
    person: str = ""
    archived: bool = False
    shared: bool = False
    """Whether another workspace shares it."""
    messages: list[Json] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """The type of the chat in events."""
        return "im" if self.direct else "channel"


class Workspace(FakePlatform):
    """What Slack keeps."""

    def __init__(self, port: int = 0, **options: Unpack[Options]) -> None:
        super().__init__(port, **options)
        self.chats: dict[str, FakeChat] = {}
        self.files: dict[str, Json] = {}
        self.contents: dict[str, bytes] = {}
        self._last = 0

    def new_chat(self, direct: bool, person: str = "", name: str = "") -> str:
        """A chat with the bot in it."""
        number = len(self.chats) + 1
        chat_id = f"{'D' if direct else 'C'}0CHAT{number:04d}"
        self._keep({"chat": {"id": chat_id, "direct": direct, "name": name, "person": person}})
        return chat_id

    def open_chat(self, person: str) -> str:
        """The direct chat with a person."""
        found = next((each.id for each in self.chats.values() if each.person == person), None)
        return found or self.new_chat(True, person)

    def find(self, chat: str, message: str) -> Json | None:
        """The message of this time."""
        return next((each for each in self.chats[chat].messages if each["ts"] == message), None)

    def next_time(self) -> str:
        """The next time of a message; each is later than the last."""
        self._last = max(self._last + 1, time.time_ns() // 1000)
        return f"{self._last // 1_000_000}.{self._last % 1_000_000:06d}"

    def add_file(self, name: str, data: bytes, **extra: object) -> Json:
        """A file in the workspace."""
        file_id, path = f"F0FILE{len(self.files) + 1:04d}", quote(name, safe="")
        file: Json = {
            "id": file_id,
            "name": name,
            "title": name,
            "mimetype": "application/octet-stream",
            "size": len(data),
            "mode": "hosted",
            "url_private": f"{self.url}/files-pri/{file_id}/{path}",
            "url_private_download": f"{self.url}/files-pri/{file_id}/download/{path}",
            **extra,
        }
        self.files[file_id], self.contents[file_id] = file, data
        return file

    def posts(self, chat: str) -> list[str]:
        """The texts of the app in a chat and its threads, as people see them."""
        return [each.text for each in self.parts(chat) if not each.file]

    def parts(self, chat: str) -> list[Post]:
        """The messages of the app in a chat and its threads."""
        found = []
        for each in self.chats[chat].messages:
            if each.get("user") != BOT_USER:
                continue
            files = cast(list[Json], each.get("files") or [{}])
            name, thread = str(files[0].get("name", "")), str(each.get("thread_ts", ""))
            found.append(Post(str(each["ts"]), plain(each), name, thread))
        return found

    def shared_file_ids(self) -> list[str]:
        """The files that people can see."""
        return [name for name, each in self.files.items() if each.get("shares")]

    def _keep(self, record: Json) -> None:
        self.remember(record)
        self.recall(record)
        self.changed()

    def recall(self, record: dict[str, object]) -> None:
        if isinstance(chat := record.get("chat"), dict):
            self.chats[chat["id"]] = FakeChat(**chat)
        if isinstance(message := record.get("message"), dict):
            self.chats[str(record["in"])].messages.append(message)
