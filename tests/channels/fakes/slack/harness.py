"""The fake of Slack in the words of all platforms."""

from __future__ import annotations

from collections.abc import Sequence

from tests.channels.fakes.harness import Harness, Said
from tests.channels.fakes.post import Post
from tests.channels.fakes.slack.platform import FakeSlack
from tests.channels.fakes.slack.workspace import APP_TOKEN, BOT_TOKEN, SIGNING_SECRET

POST_MESSAGE = "chat.postMessage"


class SlackHarness(Harness):
    """A workspace, driven by a test."""

    fake: FakeSlack
    channel = "slack"
    sends = f"POST /api/{POST_MESSAGE}"

    def settings(self) -> dict[str, str]:
        return {
            "bot_token": BOT_TOKEN,
            "app_token": APP_TOKEN,
            "signing_secret": SIGNING_SECRET,
            "transport": "socket",
            "api_url": f"{self.fake.url}/api/",
        }

    def person(self, number: int) -> str:
        return f"U0PERSON{number:02d}"

    def direct(self, number: int) -> str:
        return self.fake.open_chat(self.person(number))

    def group(self) -> str:
        found = next((each.id for each in self.fake.chats.values() if not each.direct), None)
        return found or self.fake.new_chat(False, name="general")

    def write(self, chat: str, person: str, said: Said) -> str:
        return self.fake.say(
            chat,
            person,
            said.text,
            mention=said.mention,
            files=said.files,
            thread=said.thread,
        )

    def edit(self, chat: str, message: str, text: str) -> None:
        self.fake.edit(chat, message, text)

    def delete(self, chat: str, message: str) -> None:
        self.fake.delete(chat, message)

    def press(self, chat: str, person: str, value: str) -> None:
        self.fake.press(chat, person, value)

    def redeliver(self, message: str) -> None:
        self.fake.redeliver(message)

    def parts(self, chat: str) -> Sequence[Post]:
        return self.fake.parts(chat)

    def refuse_texts(self, count: int) -> None:
        self.fake.refuse(POST_MESSAGE, "restricted_action", count)

    def revoke(self) -> None:
        self.fake.token_error = "token_revoked"

    def restore(self) -> None:
        self.fake.token_error = ""
        self.fake.refusals.pop(POST_MESSAGE, None)

    def offline(self) -> None:
        self.fake.dropping = True
        super().offline()

    def online(self) -> None:
        super().online()
        self.fake.dropping = False

    def is_acked(self, message: str) -> bool:
        return self.fake.is_acked(message)

    def lookup_off(self) -> None:
        self.fake.look_ups = False

    def lookup_on(self) -> None:
        self.fake.look_ups = True
