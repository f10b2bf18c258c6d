"""A platform on Telegram without the base client: an intake that records what it is given."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from bullpen.channels.inbound import Inbound, Payload, Written
from bullpen.channels.platform import Address, Button, ChannelContext, Sending
from bullpen.channels.telegram.platform import Telegram
from bullpen.channels.text.tree import Document
from bullpen.core.answers.attachments import OpenFile
from bullpen.core.clock import SystemClock
from bullpen.core.registry import CHANNELS, ChannelInfo
from tests.channels.fakes.telegram import TOKEN, FakeTelegram

SECONDS = 20.0
PERSON = 1001
CHAT = "1001"
GROUP = "-1001000000001"


def context(fake: FakeTelegram, account: str = "telegram", **settings: str) -> ChannelContext:
    """The context of an account that uses the fake."""
    info = CHANNELS.find(account)
    assert isinstance(info, ChannelInfo)
    values = {"bot_token": TOKEN, "api_url": fake.url, "transport": "poll", **settings}
    return ChannelContext(
        info=info,
        setting=lambda name: values.get(name, ""),
        store_id="abcd",
        directory=Path(),
        clock=SystemClock(),
        chance=lambda: 0.0,
        log=logging.getLogger("bullpen.channel.telegram"),
    )


class RecordingIntake:
    """Keeps what is added. A payload is stored at once, unless `hold` or `fail_next` is set."""

    def __init__(self, parse: Callable[[Payload], Inbound | None]) -> None:
        self._parse = parse
        self.taken: list[Inbound] = []
        self.unreadable: list[str] = []
        self.hold = False
        self.fail_next = 0
        self.held: list[asyncio.Future[None]] = []
        self.connections = 0
        self.reasons: list[str] = []
        self._changed = asyncio.Event()

    @property
    def texts(self) -> list[str]:
        """The texts that were taken in."""
        return [each.text for each in self.taken if isinstance(each, Written)]

    def add(self, payload: Payload) -> asyncio.Future[None]:
        """Take a payload in."""
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self.fail_next:
            self.fail_next -= 1
            stored.set_exception(OSError("the store cannot be written"))
            return stored
        try:
            inbound = self._parse(payload)
        except Exception as error:
            self.unreadable.append(repr(error))
            inbound = None
        if inbound is not None:
            self.taken.append(inbound)
        if self.hold:
            self.held.append(stored)
        else:
            stored.set_result(None)
        self._changed.set()
        return stored

    def connected(self, connections: int = 1) -> None:
        """Count a connection."""
        self.connections += 1
        self._changed.set()

    def disconnected(self, reason: str) -> None:
        """Keep the reason."""
        self.reasons.append(reason)
        self._changed.set()

    def heard(self) -> None:
        """Nothing to do."""

    def release(self) -> None:
        """Store what was held."""
        self.hold = False
        for each in self.held:
            if not each.done():
                each.set_result(None)
        self.held.clear()

    async def wait_for(self, promise: Callable[[], object]) -> None:
        """Wait until this is true, looked at after each change."""
        async with asyncio.timeout(SECONDS):
            while not promise():
                self._changed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(0.05):  # it may be about the fake
                        await self._changed.wait()


@asynccontextmanager
async def started(fake: FakeTelegram, **settings: str) -> AsyncIterator[Telegram]:
    """A platform after `start`."""
    platform = Telegram(context(fake, **settings))
    try:
        await platform.start()
        yield platform
    finally:
        await platform.close()


@asynccontextmanager
async def receiving(
    fake: FakeTelegram, **settings: str
) -> AsyncIterator[tuple[RecordingIntake, asyncio.Task[None]]]:
    """A platform that receives until the block ends."""
    async with started(fake, **settings) as platform:
        intake = RecordingIntake(platform.parse)
        task = asyncio.create_task(platform.receive(intake))
        try:
            yield intake, task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def part(
    text: str = "hello",
    *,
    chat: str = CHAT,
    thread: str = "",
    message: str = "",
    number: int = 0,
    file: OpenFile | None = None,
    buttons: Mapping[str, str] | None = None,
) -> Sending:
    """A part on its way."""
    return Sending(
        key=f"babcd1.{number}",
        part=number,
        to=Address(chat=chat, thread=thread, message=message, person=str(PERSON)),
        text=None if file is not None else Document.parse(text),
        file=file,
        buttons=tuple(Button(label=label, value=value) for label, value in (buttons or {}).items()),
        began_at=0,
        expires_at=1 << 50,
    )


async def note(reference: str) -> None:
    """Telegram has nothing to note."""
