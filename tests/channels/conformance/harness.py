"""What the suite needs of each fake: one way to drive a platform, and to see what people see."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol


class Post(Protocol):
    """One message of the bot on the platform."""

    @property
    def text(self) -> str: ...

    @property
    def file(self) -> str: ...

    @property
    def thread(self) -> str: ...


class Harness(Protocol):
    """A fake platform, driven by a test."""

    channel: str

    def settings(self) -> dict[str, str]:
        """The settings of an account that point the client at this fake."""
        ...

    def chat(self, direct: bool = True) -> str:
        """A chat on the platform."""
        ...

    def direct(self, number: int) -> str:
        """The direct chat of a person."""
        ...

    def person(self, number: int) -> str:
        """The id of a person."""
        ...

    def say(
        self,
        chat: str,
        person: str,
        text: str,
        *,
        mention: bool = True,
        files: Sequence[object] = (),
        thread: str = "",
    ) -> str:
        """A person writes; returns the platform's id of the message."""
        ...

    def edit(self, chat: str, message: str, text: str) -> None:
        """A person changes a message."""
        ...

    def redeliver(self, message_id: str) -> None:
        """Deliver a message again, by every way that the platform has."""
        ...

    def posts(self, chat: str) -> list[str]:
        """The bot's texts in a chat, as people see them."""
        ...

    def parts(self, chat: str) -> Sequence[Post]:
        """The bot's messages in a chat."""
        ...

    def fail_next(self, fault: str, n: int = 1, *, seconds: float = 1.0) -> None:
        """Make the next sends fail."""
        ...

    def heal(self) -> None:
        """Switch all faults off."""
        ...

    def offline(self) -> None:
        """The platform cannot be reached; people go on writing."""
        ...

    def online(self) -> None:
        """The platform can be reached again."""
        ...

    def is_acked(self, message_id: str) -> bool:
        """Whether the client acknowledged a message."""
        ...

    def lookup_off(self) -> None:
        """Look-ups of parts find nothing out."""
        ...

    def lookup_on(self) -> None:
        """Look-ups work."""
        ...


@dataclass(frozen=True)
class Kind:
    """One channel under test."""

    channel: str
    make: Callable[[], AbstractContextManager[Harness]]
    groups: bool = True
    """Whether it has groups."""
    edits: bool = True
    recovers: bool = True
    """Whether an unknown part can be looked up."""
    acknowledges: bool = True
    """Whether the platform gets an acknowledgement of each message."""


@contextmanager
def _made(module: str, fake: str, harness: str, channel: str) -> Iterator[Harness]:
    found = import_module(f"tests.channels.fakes.{module}")
    options = {"channel": channel} if module == "twilio" else {}
    with getattr(found, fake)(**options) as platform:
        yield getattr(found, harness)(platform)


def _kind(channel: str, name: str, module: str = "", **more: bool) -> Kind:
    module = module or channel
    return Kind(channel, lambda: _made(module, f"Fake{name}", f"{name}Harness", channel), **more)


KINDS = {
    each.channel: each
    for each in (
        _kind("slack", "Slack"),
        _kind("sms", "Twilio", "twilio", groups=False, edits=False),
        _kind("whatsapp", "Twilio", "twilio", groups=False, edits=False),
        _kind("discord", "Discord", acknowledges=False),
        _kind("telegram", "Telegram", recovers=False),
    )
}
