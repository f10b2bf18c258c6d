"""The platform of Discord with the real SDK against the fake, without the base client."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import ParamSpec

from bullpen.channels.discord.platform import Discord
from bullpen.channels.failures import ChannelDown
from bullpen.channels.platform import Address, Button, Sending
from bullpen.channels.text.tree import Document
from bullpen.core.answers.attachments import OpenFile
from tests.channels.fakes.discord import DiscordHarness, FakeDiscord
from tests.channels.recording import (
    WAIT_SECONDS,
    RecordingIntake,
    ShiftedClock,
    make_context,
    until,
)

Given = ParamSpec("Given")


@dataclass
class Rig:
    """The platform and what it did."""

    fake: FakeDiscord
    discord: Discord
    intake: RecordingIntake
    clock: ShiftedClock
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


@asynccontextmanager
async def started(
    fake: FakeDiscord, *, pauses: tuple[float, ...] = (0.0, 0.01), directory: Path | None = None
) -> AsyncIterator[Rig]:
    """The platform after its login, not connected to the gateway."""
    clock = ShiftedClock()
    with tempfile.TemporaryDirectory() as own:
        given = DiscordHarness(fake).settings() | {"bot_token": fake.token}
        discord = Discord(
            make_context("discord", given, directory=directory or Path(own), clock=clock)
        )
        discord.pauses = pauses
        rig = Rig(fake, discord, RecordingIntake(discord.parse), clock)
        try:
            await discord.start()
            yield rig
            assert not rig.intake.unreadable
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
        await until(lambda: rig.intake.connections)
        yield rig
