"""The fake of Telegram in the words of all platforms."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from tests.channels.fakes.harness import Harness, Said
from tests.channels.fakes.post import Post
from tests.channels.fakes.telegram.chats import TOKEN
from tests.channels.fakes.telegram.platform import FakeTelegram

SEND = "POST /bot*/sendMessage"
GROUP = "-1001000000001"
PEOPLE = 20
"""The people who have opened a chat with the bot when a harness begins."""


class TelegramHarness(Harness):
    """The chats of a bot, driven by a test."""

    fake: FakeTelegram
    channel = "telegram"
    sends = SEND

    def __init__(self, fake: FakeTelegram, *, port: int = 0) -> None:
        super().__init__(fake, port=port)
        fake.add_chat(GROUP)
        for number in range(1, PEOPLE + 1):
            fake.add_chat(self.direct(number))

    def settings(self) -> dict[str, str]:
        return {"bot_token": TOKEN, "api_url": self.fake.url, "transport": "poll"}

    def person(self, number: int) -> str:
        """The id of a person, which is also the id of their direct chat."""
        return str(1000 + number)

    def direct(self, number: int) -> str:
        return self.person(number)

    def group(self) -> str:
        return GROUP

    def write(self, chat: str, person: str, said: Said) -> str:
        return self.fake.say(
            chat,
            int(person),
            said.text,
            mention=said.mention and chat.startswith("-"),
            files=[(name, base64.b64encode(data).decode()) for name, data in said.files],
            thread=said.thread,
        )

    def edit(self, chat: str, message: str, text: str) -> None:
        self.fake.edit(chat, message, text)

    def delete(self, chat: str, message: str) -> None:
        """Telegram does not tell bots."""

    def press(self, chat: str, person: str, value: str) -> None:
        (post,) = (each for each in self.fake.parts(chat) if each.buttons)
        self.fake.press(chat, int(person), post.id, value)

    def redeliver(self, message: str) -> None:
        self.fake.redeliver(message)

    def parts(self, chat: str) -> Sequence[Post]:
        return self.fake.parts(chat)

    def posts(self, chat: str) -> list[str]:
        return [each.replace("\N{WORD JOINER}", "") for each in super().posts(chat)]

    def refuse_texts(self, count: int) -> None:
        for _ in range(count):
            self.fake.refuse(400, "Bad Request: message is too long")

    def revoke(self) -> None:
        self.fake.revoked = True

    def restore(self) -> None:
        self.fake.revoked = False

    def is_acked(self, message: str) -> bool:
        return int(message) not in self.fake.unacked()

    def lookup_off(self) -> None:
        """Telegram has no look-up."""

    def lookup_on(self) -> None:
        """Telegram has no look-up."""
