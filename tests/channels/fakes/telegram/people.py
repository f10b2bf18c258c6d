"""What people do on Telegram: they write, edit, press buttons, and block the bot."""

from __future__ import annotations

import time
from collections.abc import Sequence

from tests.channels.fakes.telegram.chats import BOT_NAME
from tests.channels.fakes.telegram.updates import Updates
from tests.channels.fakes.telegram.wire import Object


class People(Updates):
    """The people in the chats of the bot."""

    def say(
        self,
        chat: str,
        person: int,
        text: str,
        *,
        mention: bool = False,
        files: Sequence[tuple[str, str]] = (),
        thread: str = "",
        reply_to: str = "",
        at: int = 0,
        fields: Object | None = None,
    ) -> str:
        """A person writes; each file is a name and its content in base64. Returns the id."""
        self.add_chat(chat, person)
        entities: list[Object] = []
        if mention:
            name = f"@{BOT_NAME}"
            entities = [{"type": "mention", "offset": 0, "length": len(name)}]
            text = f"{name} {text}"
        first = ""
        for file in files or (None,):
            message = self._new_message(chat, person, thread, at)
            caption = text if not first else ""
            if file is not None:
                message["document"] = self._store_file(*file)
                if len(files) > 1:
                    message["media_group_id"] = f"album{first or message['message_id']}"
            if caption:
                message["caption" if file else "text"] = caption
                if entities:
                    message["caption_entities" if file else "entities"] = entities
            if reply_to:
                message["reply_to_message"] = self._original(chat, reply_to)
            message.update(fields or {})
            self.push({"message": message})
            first = first or str(message["message_id"])
        return first

    def edit(self, chat: str, message: str, text: str, at: int = 0) -> None:
        """A person changes the text of a message."""
        with self._lock:
            original = self._by_message[f"{chat}:{message}"]["message"]
            assert isinstance(original, dict)
            edited = {**original, "edit_date": at or int(time.time())}
            edited["caption" if "caption" in original else "text"] = text
        self.push({"edited_message": edited})

    def press(self, chat: str, person: int, message: str, value: str) -> str:
        """A person presses a button of a message; returns the id of the query."""
        with self._lock:
            number = f"{self._next_update}77"
            sender = {"id": person, "is_bot": False, "first_name": f"Person {person}"}
            self.add_chat(chat, person)
            shown: Object = {"message_id": int(message), "chat": self.chats[chat], "date": 0}
        query = {"id": number, "from": sender, "message": shown, "data": value}
        self.push({"callback_query": {**query, "chat_instance": "1"}})
        return number

    def block(self, chat: str, status: str = "kicked") -> None:
        """The bot is blocked in a private chat, or removed from a group."""
        with self._lock:
            self.blocked.add(chat)
        self._push_member(chat, status)

    def unblock(self, chat: str) -> None:
        """The bot is let in again."""
        with self._lock:
            self.blocked.discard(chat)
        self._push_member(chat, "member")

    def migrate(self, chat: str, to: str, *, quietly: bool = False) -> None:
        """A group becomes a supergroup with another id."""
        self.add_chat(to)
        with self._lock:
            self.moved[chat] = to
            old = {**self._new_message(chat, 1001), "migrate_to_chat_id": int(to)}
            new = {**self._new_message(to, 1001), "migrate_from_chat_id": int(chat)}
        if not quietly:
            self.push({"message": old})
            self.push({"message": new})

    def _original(self, chat: str, message: str) -> Object:
        if (update := self._by_message.get(f"{chat}:{message}")) is not None:
            original = update["message"]
            assert isinstance(original, dict)
            return original
        return {"message_id": int(message), "from": self.me, "chat": self.chats[chat], "date": 1}

    def _push_member(self, chat: str, status: str) -> None:
        self.add_chat(chat)
        member = {"status": status, "user": self.me}
        sender = {"id": 1001, "is_bot": False, "first_name": "Person 1001"}
        update = {"chat": self.chats[chat], "from": sender, "date": int(time.time())}
        old = {"status": "member", "user": self.me}
        self.push({"my_chat_member": {**update, "old_chat_member": old, "new_chat_member": member}})
