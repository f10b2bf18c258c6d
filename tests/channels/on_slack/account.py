"""An account on a fake of Slack."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from bullpen.channels.platform import Address, ChannelContext, Sending
from bullpen.channels.slack.platform import Slack
from bullpen.channels.text.tree import Document
from bullpen.core.clock import SystemClock
from tests.channels.fakes.slack import FakeSlack, SlackHarness
from tests.channels.recording import RecordingIntake, ShiftedClock, make_context, until

Result = TypeVar("Result")
KEY = "b0001.17.0"
ANN, BOB = "U0PERSON01", "U0PERSON02"


@dataclass
class Account:
    """An account on a fake; a test runs its platform."""

    fake: FakeSlack
    directory: Path
    settings: dict[str, str] = field(default_factory=dict)
    clock: ShiftedClock = field(default_factory=ShiftedClock)

    def context(self) -> ChannelContext:
        """The context of the platform."""
        given = SlackHarness(self.fake).settings() | self.settings
        return make_context(
            "slack", given, directory=self.directory, clock=self.clock, store_id="0001"
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
        self, work: Callable[[Slack, RecordingIntake], Coroutine[object, object, Result]]
    ) -> Result:
        """Run work with a platform that receives; what `receive` raises ends the test."""

        async def main(slack: Slack) -> Result:
            intake = RecordingIntake(slack.parse)
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
                result = await working
                assert not intake.unreadable
                return result
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
