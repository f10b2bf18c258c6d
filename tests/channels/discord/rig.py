"""The platform of Discord with the real SDK against the fake, without the base client."""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

from bullpen.channels.discord.platform import Discord
from bullpen.channels.failures import ChannelDown
from bullpen.channels.inbound import Inbound, Payload, Written
from bullpen.channels.platform import Address, Button, ChannelContext, Sending
from bullpen.channels.text.tree import Document
from bullpen.core.answers.attachments import OpenFile
from bullpen.core.clock import SystemClock
from bullpen.core.registry import CHANNELS
from bullpen.core.registry.channels import ChannelInfo
from tests.channels.fakes.discord import API, FakeDiscord

WAIT_SECONDS = 20.0

Kind = TypeVar("Kind")
Result = TypeVar("Result")
Given = ParamSpec("Given")


class SettableClock(SystemClock):
    """The clock of the machine, which a test may put forward."""

    def __init__(self) -> None:
        self.ahead = 0

    def now(self) -> int:
        return super().now() + self.ahead


class RecordingIntake:
    """An intake that records, and stores everything at once unless a test holds it."""

    def __init__(self, discord: Discord) -> None:
        self._discord = discord
        self.payloads: list[Payload] = []
        self.inbound: list[Inbound | None] = []
        self.connections = 0
        self.lost: list[str] = []
        self.frames = 0
        self.holds = False
        self.held: list[asyncio.Future[None]] = []

    def add(self, payload: Payload) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.payloads.append(payload)
        self.inbound.append(self._discord.parse(payload))
        if self.holds:
            self.held.append(future)
        else:
            future.set_result(None)
        return future

    def connected(self, connections: int = 1) -> None:
        self.connections += 1

    def disconnected(self, reason: str) -> None:
        self.lost.append(reason)

    def heard(self) -> None:
        self.frames += 1

    def of(self, kind: type[Kind]) -> list[Kind]:
        """What came of one kind."""
        return [each for each in self.inbound if isinstance(each, kind)]

    @property
    def texts(self) -> list[str]:
        return [each.text for each in self.of(Written)]


@dataclass
class Rig:
    """The platform and what it did."""

    fake: FakeDiscord
    discord: Discord
    intake: RecordingIntake
    clock: SettableClock
    notes: list[str] = field(default_factory=list)
    task: asyncio.Task[None] | None = None

    async def send(self, sending: Sending) -> str:
        """Send one part as the base client does."""

        async def note(reference: str) -> None:
            self.notes.append(reference)

        return await self.discord.send(sending, note)

    def sending(
        self,
        chat: str = "",
        text: str = "hello",
        *,
        key: str = "babcd1.0",
        person: str = "",
        message: str = "",
        file: OpenFile | None = None,
        buttons: tuple[Button, ...] = (),
        part: int = 0,
        reference: str = "",
    ) -> Sending:
        """A part."""
        return Sending(
            key=key,
            part=part,
            to=Address(chat=chat, person=person, message=message),
            text=None if file is not None else Document.parse(text),
            file=file,
            buttons=buttons,
            began_at=self.clock.now(),
            expires_at=self.clock.now() + 3_600_000,
            reference=reference,
        )

    async def down(self) -> ChannelDown:
        """The error that `receive` ends with."""
        assert self.task is not None
        with suppress(ChannelDown):
            async with asyncio.timeout(WAIT_SECONDS):
                await self.task
        error = self.task.exception()
        assert isinstance(error, ChannelDown), error
        return error


def in_loop(test: Callable[Given, Awaitable[None]]) -> Callable[Given, None]:
    """Run a test in an event loop of its own."""

    @wraps(test)
    def run(*given: Given.args, **named: Given.kwargs) -> None:
        async def main() -> None:
            await test(*given, **named)

        asyncio.run(main())

    return run


async def eventually(promise: Callable[[], Result], seconds: float = WAIT_SECONDS) -> Result:
    """Wait until this is true."""
    async with asyncio.timeout(seconds):
        while not (found := promise()):
            await asyncio.sleep(0.01)
    return found


def context(fake: FakeDiscord, clock: SettableClock, directory: Path) -> ChannelContext:
    """What the platform is made with."""
    info = CHANNELS.find("discord")
    assert isinstance(info, ChannelInfo)
    values = {"bot_token": fake.token, "api_url": fake.url + API}
    return ChannelContext(
        info=info,
        setting=lambda name: values.get(name, ""),
        store_id="abcd",
        directory=directory,
        clock=clock,
        chance=lambda: 0.5,
        log=logging.getLogger("bullpen.test.discord"),
    )


@asynccontextmanager
async def started(
    fake: FakeDiscord, *, pauses: tuple[float, ...] = (0.0, 0.01), directory: Path | None = None
) -> AsyncIterator[Rig]:
    """The platform after its login, not connected to the gateway."""
    clock = SettableClock()
    with tempfile.TemporaryDirectory() as own:
        discord = Discord(context(fake, clock, directory or Path(own)))
        discord.pauses = pauses
        rig = Rig(fake, discord, RecordingIntake(discord), clock)
        try:
            await discord.start()
            yield rig
        finally:
            if rig.task is not None:
                rig.task.cancel()
                await asyncio.gather(rig.task, return_exceptions=True)
            await discord.close()


@asynccontextmanager
async def connected(
    fake: FakeDiscord, *, pauses: tuple[float, ...] = (0.0, 0.01)
) -> AsyncIterator[Rig]:
    """The platform, connected to the gateway."""
    async with started(fake, pauses=pauses) as rig:
        rig.task = asyncio.create_task(rig.discord.receive(rig.intake))
        await eventually(lambda: rig.intake.connections)
        yield rig
