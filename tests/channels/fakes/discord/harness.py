"""The fake of Discord in the words of all platforms."""

from __future__ import annotations

from collections.abc import Sequence

from tests.channels.fakes.discord.chats import API, CHANNEL, FIRST_PERSON, TOKEN
from tests.channels.fakes.discord.platform import FakeDiscord
from tests.channels.fakes.harness import Harness, Said
from tests.channels.fakes.post import Post


class DiscordHarness(Harness):
    """A server with its people, driven by a test."""

    fake: FakeDiscord
    channel = "discord"
    sends = "POST */messages"

    def settings(self) -> dict[str, str]:
        return {"bot_token": TOKEN, "api_url": self.fake.url + API}

    def person(self, number: int) -> str:
        return str(FIRST_PERSON + number)

    def direct(self, number: int) -> str:
        return self.fake.direct_chat(self.person(number))

    def group(self) -> str:
        return CHANNEL

    def write(self, chat: str, person: str, said: Said) -> str:
        chat = said.thread or chat  # a thread is a chat
        return self.fake.say(chat, person, said.text, mention=said.mention, files=said.files)

    def edit(self, chat: str, message: str, text: str) -> None:
        self.fake.edit(message, text)

    def delete(self, chat: str, message: str) -> None:
        self.fake.delete(message)

    def press(self, chat: str, person: str, value: str) -> None:
        self.fake.press(self.fake.parts(chat)[-1].id, person, value)

    def redeliver(self, message: str) -> None:
        """Send a message again, as an event and by a resumed session."""
        self.fake.redeliver(message)
        self.fake.rewind()
        self.fake.drop_connections()

    def parts(self, chat: str) -> Sequence[Post]:
        return self.fake.parts(chat)

    def refuse_texts(self, count: int) -> None:
        self.fake.refusals += count

    def revoke(self) -> None:
        self.fake.token = "another.token.now"

    def restore(self) -> None:
        self.fake.token = TOKEN
        self.fake.refusals = 0

    def offline(self) -> None:
        super().offline()
        self.fake.expire_sessions()

    def lookup_off(self) -> None:
        self.fake.lookup = False

    def lookup_on(self) -> None:
        self.fake.lookup = True
