"""What a test does to a fake and sees of it, in the same words for every platform."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import ClassVar

from tests.channels.fakes.base import FakePlatform
from tests.channels.fakes.faults import Fault
from tests.channels.fakes.post import Post

File = tuple[str, bytes]
"""Name and content."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a person writes."""

    text: str
    mention: bool
    """Whether it names the bot, where it has to be named."""
    files: Sequence[File]
    thread: str


class Harness(ABC):
    """A fake platform, driven by a test."""

    channel: str
    sends: ClassVar[str]
    """The pattern of the requests that send a text."""

    def __init__(self, fake: FakePlatform, *, port: int = 0) -> None:
        """`port` is that of the client's listener, on a platform that needs one."""
        self.fake = fake
        self.port = port
        self._gone = ExitStack()

    @abstractmethod
    def settings(self) -> dict[str, str]:
        """The settings of an account that point the client at this fake."""

    @abstractmethod
    def person(self, number: int) -> str:
        """The id of a person."""

    @abstractmethod
    def direct(self, number: int) -> str:
        """The direct chat of a person."""

    @abstractmethod
    def group(self) -> str:
        """A chat of several people."""

    def chat(self, direct: bool = True) -> str:
        """The direct chat of the first person, or the group."""
        return self.direct(1) if direct else self.group()

    def say(
        self,
        chat: str,
        person: str,
        text: str,
        *,
        mention: bool = True,
        files: Sequence[File] = (),
        thread: str = "",
    ) -> str:
        """A person writes; returns the platform's id of the message."""
        return self.write(chat, person, Said(text, mention, files, thread))

    @abstractmethod
    def write(self, chat: str, person: str, said: Said) -> str:
        """A person writes; returns the platform's id of the message."""

    @abstractmethod
    def edit(self, chat: str, message: str, text: str) -> None:
        """A person changes a message."""

    @abstractmethod
    def delete(self, chat: str, message: str) -> None:
        """A person deletes a message."""

    @abstractmethod
    def press(self, chat: str, person: str, value: str) -> None:
        """A person presses the button with this value."""

    @abstractmethod
    def redeliver(self, message: str) -> None:
        """Deliver a message again, by every way that the platform has."""

    @abstractmethod
    def parts(self, chat: str) -> Sequence[Post]:
        """The bot's messages in a chat, as people see them."""

    def posts(self, chat: str) -> list[str]:
        """The bot's texts in a chat, as people see them."""
        return [each.text for each in self.parts(chat) if each.text or not each.file]

    def fail_next(self, fault: str, n: int = 1, *, seconds: float = 1.0) -> None:
        """Make the next sends fail, by a `Fault` or by one of these names."""
        match fault:
            case "refuse":
                self.fake.vanish(seconds)
            case "error500":
                self.fake.fail(Fault.ERROR, self.sends, times=n)
            case "taken_then_500":
                self.fake.fail(Fault.ERROR, self.sends, times=n, taken=True)
            case "rate_limit":
                self.fake.fail(Fault.LIMIT, self.sends, times=n, seconds=seconds)
            case "refused":
                self.refuse_texts(n)
            case "revoked":
                self.revoke()
            case _:
                self.fake.fail(fault, self.sends, times=n)

    @abstractmethod
    def refuse_texts(self, count: int) -> None:
        """Refuse the next texts, whatever they say."""

    @abstractmethod
    def revoke(self) -> None:
        """Make the account's credentials invalid."""

    @abstractmethod
    def restore(self) -> None:
        """Make the account's credentials valid again, and refuse no text."""

    def heal(self) -> None:
        """End what `fail_next` began."""
        self.restore()
        self.fake.heal()

    def offline(self) -> None:
        """The platform cannot be reached, for so long that it drops events."""
        self._gone.enter_context(self.fake.gone())

    def online(self) -> None:
        """The platform can be reached again."""
        self._gone.close()

    def is_acked(self, message: str) -> bool:
        """Whether the client acknowledged a message; so where the platform asks for nothing."""
        return True

    @abstractmethod
    def lookup_off(self) -> None:
        """Look-ups of parts find nothing out."""

    @abstractmethod
    def lookup_on(self) -> None:
        """Look-ups work."""
