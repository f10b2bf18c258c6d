"""What Telegram keeps for one bot: chats, files, and the messages of the bot."""

from __future__ import annotations

import base64
import threading
import time
from dataclasses import dataclass, field
from typing import Unpack

from tests.channels.fakes.base import FakePlatform, Options
from tests.channels.fakes.post import Post
from tests.channels.fakes.telegram.wire import Object

TOKEN = "7000000001:AAF-fake_token_of_the_fake_telegram_server"
BOT_ID = 7000000001
BOT_NAME = "bullpen_bot"


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramPost(Post):
    """A message of the bot in a chat of Telegram."""

    chat: str
    entities: list[Object] = field(default_factory=list)
    kind: str = ""
    data: str = ""
    """The file, in base64."""
    reply_to: str = ""
    buttons: list[Object] = field(default_factory=list)


class Chats(FakePlatform):
    """The chats of one bot."""

    def __init__(self, port: int = 0, **options: Unpack[Options]) -> None:
        super().__init__(port, **options)
        self.token = TOKEN
        self.revoked = False
        self.me: Object = {
            "id": BOT_ID,
            "is_bot": True,
            "first_name": "Bullpen",
            "username": BOT_NAME,
            "can_join_groups": True,
            "can_read_all_group_messages": False,
            "has_topics_enabled": False,
        }
        self.chats: dict[str, Object] = {}
        self.blocked: set[str] = set()
        self.moved: dict[str, str] = {}
        self.topics: set[str] = set()
        """`chat/thread` of the topics that exist."""
        self.sent: list[TelegramPost] = []
        self._lock = threading.RLock()
        self._files: dict[str, tuple[str, bytes]] = {}
        self._next_message = 100

    def add_chat(self, chat: str, person: int = 0, *, kind: str = "", forum: bool = False) -> None:
        """Make a chat known to the bot; one with a negative id is a group."""
        with self._lock:
            if chat in self.chats:
                return
            if chat.startswith("-"):
                found: Object = {
                    "id": int(chat),
                    "type": kind or "supergroup",
                    "title": "The group",
                }
                if forum:
                    found["is_forum"] = True
            else:
                found = {
                    "id": int(chat),
                    "type": "private",
                    "first_name": f"Person {person or chat}",
                }
            self.chats[chat] = found
        self.remember({"chat": found})

    def parts(self, chat: str) -> list[TelegramPost]:
        """The bot's messages in a chat."""
        with self._lock:
            return [each for each in self.sent if each.chat == chat]

    def posts(self, chat: str) -> list[str]:
        """The texts of the bot's messages in a chat."""
        return [each.text for each in self.parts(chat) if not each.file]

    def recall(self, record: dict[str, object]) -> None:
        if isinstance(chat := record.get("chat"), dict):
            self.chats[str(chat["id"])] = chat
        elif isinstance(post := record.get("post"), dict):
            self.sent.append(TelegramPost(**post))
            self._next_message = max(self._next_message, int(post["id"]) + 1)
        elif isinstance(file := record.get("file"), list):
            self._files[file[0]] = (file[1], base64.b64decode(file[2]))

    def _new_message(self, chat: str, person: int, thread: str = "", at: int = 0) -> Object:
        self.add_chat(chat, person)
        with self._lock:
            number = self._next_message
            self._next_message += 1
            message: Object = {
                "message_id": number,
                "from": {"id": person, "is_bot": False, "first_name": f"Person {person}"},
                "chat": self.chats[chat],
                "date": at or int(time.time()),
            }
            if thread:
                self.topics.add(f"{chat}/{thread}")
                message |= {"message_thread_id": int(thread), "is_topic_message": True}
        return message

    def _store_file(self, name: str, content: str) -> Object:
        with self._lock:
            file_id = f"file{len(self._files) + 1}"
            self._files[file_id] = (name, base64.b64decode(content))
        self.remember({"file": [file_id, name, content]})
        size = len(self._files[file_id][1])
        return {
            "file_id": file_id,
            "file_unique_id": f"u{file_id}",
            "file_name": name,
            "file_size": size,
        }
