"""An account on a fake of Slack, and an intake that records."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from bullpen.channels.inbound import Inbound, Payload
from bullpen.channels.platform import Address, ChannelContext, Sending
from bullpen.channels.slack.platform import Slack
from bullpen.channels.text.tree import Document
from bullpen.core.clock import SystemClock
from bullpen.core.registry import CHANNELS, ChannelInfo
from tests.channels.fakes.slack import FakeSlack, SlackHarness

Result = TypeVar("Result")
KEY = "b0001.17.0"
ANN, BOB = "U0PERSON01", "U0PERSON02"


class Clock(SystemClock):
    """A clock that a test moves."""

    ahead = 0

    def now(self) -> int:
        return super().now() + self.ahead


@dataclass
class Recorder:
    """An intake that keeps what it gets; it stores while `works`."""

    platform: Slack
    payloads: list[Payload] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    works: bool = True
    refused: int = 0
    connections: int = 0
    held: list[asyncio.Future[None]] | None = None
    """Where futures are kept that the test sets, if it is a list."""

    def add(self, payload: Payload) -> asyncio.Future[None]:
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self.works:
            self.payloads.append(payload)
            if self.held is None:
                stored.set_result(None)
            else:
                self.held.append(stored)
        else:
            self.refused += 1
            stored.set_exception(OSError("the store cannot be written"))
        return stored

    def connected(self, connections: int = 1) -> None:
        self.calls.append("connected")
        self.connections = connections

    def disconnected(self, reason: str) -> None:
        self.calls.append(f"disconnected: {reason}")

    def heard(self) -> None:
        pass

    def inbound(self) -> list[Inbound]:
        """What the payloads say, without those of no interest."""
        return [found for each in self.payloads if (found := self.platform.parse(each)) is not None]


async def until(promise: Callable[[], Result], seconds: float = 20.0) -> Result:
    """Wait until this is true."""
    async with asyncio.timeout(seconds):
        while not (found := promise()):
            await asyncio.sleep(0.01)
    return found


@dataclass
class Account:
    """An account on a fake; a test runs its platform."""

    fake: FakeSlack
    directory: Path
    settings: dict[str, str] = field(default_factory=dict)
    clock: Clock = field(default_factory=Clock)

    def context(self) -> ChannelContext:
        """The context of the platform."""
        info = CHANNELS.find("slack")
        assert isinstance(info, ChannelInfo)
        values = {each.name: each.default for each in info.all_settings}
        values |= SlackHarness(self.fake).settings() | self.settings
        return ChannelContext(
            info=info,
            setting=values.__getitem__,
            store_id="0001",
            directory=self.directory,
            clock=self.clock,
            chance=lambda: 0.0,
            log=logging.getLogger("bullpen.channel.slack"),
        )

    def run(self, work: Callable[[Slack], Coroutine[object, object, Result]]) -> Result:
        """Run work with a platform that has started, and close it."""

        async def main() -> Result:
            slack = Slack(self.context())
            try:
                await slack.start()
                return await work(slack)
            finally:
                await slack.close()

        return asyncio.run(main())

    def receive(
        self, work: Callable[[Slack, Recorder], Coroutine[object, object, Result]]
    ) -> Result:
        """Run work with a platform that receives; what `receive` raises ends the test."""

        async def main(slack: Slack) -> Result:
            intake = Recorder(slack)
            receiving = asyncio.create_task(slack.receive(intake))
            try:
                await until(lambda: intake.calls or receiving.done())
                if receiving.done():
                    await receiving
                working = asyncio.create_task(work(slack, intake))
                await asyncio.wait(
                    {working, receiving}, return_when=asyncio.FIRST_COMPLETED, timeout=60
                )
                if not working.done():
                    working.cancel()
                    await receiving
                return await working
            finally:
                receiving.cancel()
                await asyncio.wait({receiving})

        return self.run(main)


def text_part(
    chat: str, text: str = "hello", *, thread: str = "", person: str = "", began_at: int = 0
) -> Sending:
    """A text on its way."""
    now = SystemClock().now()
    return Sending(
        key=KEY,
        part=0,
        to=Address(chat=chat, thread=thread, person=person),
        text=Document.parse(text),
        began_at=began_at or now,
        expires_at=now + 60_000,
    )


async def no_note(reference: str) -> None:
    """Record nothing."""
