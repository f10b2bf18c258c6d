"""A fake and its harness in a process of their own, driven from another one.

`python -m tests.channels.fakes.driven CHANNEL LISTENER --port PORT [--state FILE]`: LISTENER is the
port on which the client takes webhooks.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self, Unpack

from tests.channels.fakes.base import FakePlatform, Options
from tests.channels.fakes.channels import FAKES
from tests.channels.fakes.process import FakeProcess, serve
from tests.ports import free_port

TOKEN = re.compile(rb"q\d+q")
"""What marks a text, so that it is found in the body of any platform's request."""


class RemoteFake:
    """The fake of a channel in a process, which may be killed and started again."""

    def __init__(self, channel: str, directory: Path) -> None:
        self.channel = channel
        self.process = FakeProcess(
            "tests.channels.fakes.driven",
            directory / f"fake-{channel}.state",
            channel,
            str(free_port()),
        )

    def __enter__(self) -> Self:
        self.process.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:  # noqa: ANN401
        self.process.__exit__(*error)

    def drive(self, method: str, *given: object) -> Any:  # noqa: ANN401
        """Call a method of the harness."""
        return self.process.call("drive", method=method, given=given)

    def settings(self) -> dict[str, str]:
        """The settings of an account that point the client at this fake."""
        found: dict[str, str] = self.drive("settings")
        return found

    def person(self, number: int) -> str:
        """The id of a person."""
        return str(self.drive("person", number))

    def direct(self, number: int) -> str:
        """The direct chat of a person."""
        return str(self.drive("direct", number))

    def say(self, number: int, texts: Sequence[str], gap: float = 0) -> list[float]:
        """A person writes these, with pauses; returns when each was written."""
        found = self.process.call("say_each", number=number, texts=texts, gap=gap)
        assert isinstance(found, list)
        return [float(each) for each in found]

    def say_all(self, texts: Sequence[str]) -> list[float]:
        """Each of these is written by a person of its own; returns when each was written."""
        found = self.process.call("say_all", texts=texts)
        assert isinstance(found, list)
        return [float(each) for each in found]

    def people(self, count: int) -> list[tuple[str, str]]:
        """The ids of so many people, and their direct chats."""
        found = self.process.call("people", count=count)
        assert isinstance(found, list)
        return [(str(person), str(chat)) for person, chat in found]

    def posts(self, number: int) -> list[str]:
        """The texts of the bot in the direct chat of a person."""
        return [str(each) for each in self.drive("posts", self.direct(number))]

    def pushed(self) -> dict[str, float]:
        """When the first webhook of each text was sent; it waits for the one before it."""
        found = self.process.call("pushes")
        assert isinstance(found, dict)
        return {str(text): float(at) for text, at in found.items()}

    def asked(self) -> dict[str, float]:
        """When the first request with each mark arrived."""
        found = self.process.call("marks")
        assert isinstance(found, dict)
        return {str(mark): float(at) for mark, at in found.items()}


class Controls:
    """What `RemoteFake` calls, beside the controls of the fake."""

    names = frozenset({"drive", "people", "say_each", "say_all", "pushes", "marks"})
    harness: Any
    pushed: dict[str, float]

    def drive(self, method: str, given: Sequence[object]) -> object:
        """Call a method of the harness."""
        answer: object = getattr(self.harness, method)(*given)
        return answer

    def people(self, count: int) -> list[tuple[str, str]]:
        """So many people, and their direct chats."""
        numbers = range(1, count + 1)
        return [(self.harness.person(each), self.harness.direct(each)) for each in numbers]

    def say_each(self, number: int, texts: Sequence[str], gap: float) -> list[float]:
        """A person writes these, with pauses."""
        chat, person = self.harness.direct(number), self.harness.person(number)
        written = []
        for each in texts:
            written.append(time.time())
            self.harness.say(chat, person, each)
            time.sleep(gap)
        return written

    def say_all(self, texts: Sequence[str]) -> list[float]:
        """Each text is written by a person of its own."""
        written = []
        for (person, chat), text in zip(self.people(len(texts)), texts, strict=True):
            written.append(time.time())
            self.harness.say(chat, person, text)
        return written

    def pushes(self) -> dict[str, float]:
        """When the first webhook of each text was sent."""
        return self.pushed

    def marks(self) -> dict[str, float]:
        """When the first request with each mark arrived."""
        assert isinstance(self, FakePlatform)
        return _first_marks(self)


def driven(channel: str, listener: int) -> type[FakePlatform]:
    """The class of the fake of a channel, with the controls that `RemoteFake` calls."""
    found = FAKES[channel]
    fake: Any = found.platform

    class Driven(Controls, fake):  # type: ignore[misc]
        controls = fake.controls | Controls.names

        def __init__(self, port: int = 0, **options: Unpack[Options]) -> None:
            self.pushed = {}
            super().__init__(port, **options)

        def __enter__(self) -> Self:
            super().__enter__()
            self.harness = found.harness(self, port=listener)
            return self

        async def _push_message(self, message: Any, *more: Any) -> int:  # noqa: ANN401
            self.pushed.setdefault(message.body, time.time())
            return int(await super()._push_message(message, *more))

    return Driven


def _first_marks(fake: FakePlatform) -> dict[str, float]:
    """When the first request with each mark arrived."""
    found: dict[str, float] = {}
    for each in fake.requests("POST *"):
        for mark in TOKEN.findall(each.body):
            found.setdefault(mark.decode(), each.at)
    return found


if __name__ == "__main__":
    channel, listener = sys.argv.pop(1), int(sys.argv.pop(1))
    serve(driven(channel, listener))
