"""The fake of Twilio in the words of all platforms."""

from __future__ import annotations

from collections.abc import Sequence

from bullpen.channels.files.file_types import type_by_name
from tests.channels.fakes.base import HOST
from tests.channels.fakes.harness import Harness, Said
from tests.channels.fakes.post import Post
from tests.channels.fakes.twilio.messages import ACCOUNT_SID, AUTH_TOKEN, NUMBER
from tests.channels.fakes.twilio.platform import FakeTwilio
from tests.channels.fakes.twilio.rest import TEMPLATE
from tests.ports import free_port


class TwilioHarness(Harness):
    """A number, driven by a test."""

    fake: FakeTwilio
    sends = "POST */Messages.json"

    def __init__(self, fake: FakeTwilio, *, port: int = 0) -> None:
        super().__init__(fake, port=port or free_port())
        self.channel = fake.channel
        fake.public_url = f"https://bots.example.org/{fake.channel}"
        fake.listener = f"http://{HOST}:{self.port}"

    def settings(self) -> dict[str, str]:
        return {
            "account_sid": ACCOUNT_SID,
            "auth_token": AUTH_TOKEN,
            "number": NUMBER,
            "public_url": self.fake.public_url,
            "port": str(self.port),
            "api_url": self.fake.url,
            **({"template": TEMPLATE} if self.channel == "whatsapp" else {}),
        }

    def person(self, number: int) -> str:
        """The id of a person, which is their number and also their chat."""
        return f"+1555100{number:04}"

    def direct(self, number: int) -> str:
        return self.person(number)

    def group(self) -> str:
        raise AssertionError("Twilio has no groups")

    def write(self, chat: str, person: str, said: Said) -> str:
        assert chat == person, "a chat is the number of its person"
        files = [(name, type_by_name(name), data) for name, data in said.files]
        return self.fake.say(person, said.text, files)

    def edit(self, chat: str, message: str, text: str) -> None:
        raise AssertionError("Twilio has no edits")

    def delete(self, chat: str, message: str) -> None:
        raise AssertionError("Twilio has no deletions")

    def press(self, chat: str, person: str, value: str) -> None:
        raise AssertionError("Twilio has no buttons")

    def redeliver(self, message: str) -> None:
        """Push a message again by both webhooks."""
        self.fake.redeliver(message)
        self.fake.redeliver(message, fallback=True)

    def parts(self, chat: str) -> Sequence[Post]:
        return self.fake.parts(chat)

    def refuse_texts(self, count: int) -> None:
        self.fake.next_codes += [30007] * count

    def revoke(self) -> None:
        self.fake.revoked = True

    def restore(self) -> None:
        self.fake.revoked = False
        self.fake.next_codes.clear()

    def offline(self) -> None:
        self.fake.webhooks = False
        super().offline()

    def online(self) -> None:
        """Only the list has what was written meanwhile."""
        super().online()
        self.fake.webhooks = True

    def is_acked(self, message: str) -> bool:
        return message in self.fake.acked

    def lookup_off(self) -> None:
        """Neither status callbacks nor the list tell what became of a part."""
        self.fake.listing, self._callbacks = False, self.fake.callbacks
        self.fake.callbacks = ()

    def lookup_on(self) -> None:
        self.fake.listing, self.fake.callbacks = True, self._callbacks
