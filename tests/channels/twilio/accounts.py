"""An account of Twilio in a test: the platform with its settings, and an intake that records."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from bullpen.channels.inbound import Inbound, Payload
from bullpen.channels.platform import Address, ChannelContext, Place, Sending
from bullpen.channels.text.tree import Document
from bullpen.channels.twilio.platform import Sms, WhatsApp
from bullpen.core.answers.attachments import OpenFile
from bullpen.core.clock import HOUR, MINUTE, SystemClock
from bullpen.core.registry import CHANNELS, ChannelInfo
from tests.channels.fakes.twilio import FakeTwilio, TwilioHarness

NOTHING: Mapping[str, str] = {}
ANN = "+15551000001"


class ShiftedClock(SystemClock):
    """The machine's clock, which a test sets forward."""

    shift = 0

    def now(self) -> int:
        return super().now() + self.shift


class RecordingIntake:
    """Takes everything in at once, unless the store is said to be down."""

    def __init__(self, parse: Callable[[Payload], Inbound | None]) -> None:
        self.parse = parse
        self.payloads: list[Payload] = []
        self.taken: list[Inbound | None] = []
        self.error: Exception | None = None
        self.pending: list[asyncio.Future[None]] | None = None
        """If it is a list, nothing is committed; the futures wait in it."""
        self.connections = 0
        self.heards = 0
        self.ready = asyncio.Event()

    def add(self, payload: Payload) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self.error is not None:
            future.set_exception(self.error)
            return future
        self.payloads.append(payload)
        self.taken.append(self.parse(payload))
        if self.pending is None:
            future.set_result(None)
        else:
            self.pending.append(future)
        return future

    def connected(self, connections: int = 1) -> None:
        self.connections += 1
        self.ready.set()

    def disconnected(self, reason: str) -> None:
        raise AssertionError(reason)

    def heard(self) -> None:
        self.heards += 1


def make_platform(
    fake: FakeTwilio,
    directory: Path,
    settings: Mapping[str, str] = NOTHING,
    clock: SystemClock | None = None,
) -> Sms | WhatsApp:
    """The platform of an account with these settings in place of the harness's."""
    info = CHANNELS.find(fake.channel)
    assert isinstance(info, ChannelInfo)
    given = TwilioHarness(fake).settings() | dict(settings)
    defaults = {each.name: each.default for each in info.all_settings}
    context = ChannelContext(
        info=info,
        setting=lambda name: given.get(name, defaults.get(name, "")),
        store_id="ABCD",
        directory=directory,
        clock=clock or SystemClock(),
        chance=random.Random(1).random,
        log=logging.getLogger(f"bullpen.channel.{fake.channel}"),
    )
    return Sms(context) if fake.channel == "sms" else WhatsApp(context)


@asynccontextmanager
async def started(
    fake: FakeTwilio,
    directory: Path,
    settings: Mapping[str, str] = NOTHING,
    clock: SystemClock | None = None,
) -> AsyncIterator[Sms | WhatsApp]:
    """A platform without its listener."""
    platform = make_platform(fake, directory, settings, clock)
    try:
        await platform.start()
        yield platform
    finally:
        await platform.close()


@asynccontextmanager
async def receiving(
    fake: FakeTwilio,
    directory: Path,
    settings: Mapping[str, str] = NOTHING,
    clock: SystemClock | None = None,
) -> AsyncIterator[tuple[Sms | WhatsApp, RecordingIntake]]:
    """A platform that receives."""
    async with started(fake, directory, settings, clock) as platform:
        intake = RecordingIntake(platform.parse)
        task = asyncio.create_task(platform.receive(intake))
        ready = asyncio.create_task(intake.ready.wait())
        await asyncio.wait([task, ready], return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if task.done():
            task.result()
        try:
            yield platform, intake
            await asyncio.to_thread(fake.wait_for, fake.settled)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def no_note(reference: str) -> None:
    """Twilio needs no note."""
    raise AssertionError(reference)


def a_part(
    text: str = "Hello",
    *,
    key: str = "bABCD7.0",
    to: str = ANN,
    began_at: int | None = None,
    life: int = HOUR,
    file: OpenFile | None = None,
    window_until: int = 0,
) -> Sending:
    """A part on its way to a person."""
    now = SystemClock().now()
    return Sending(
        key=key,
        part=0,
        to=Address(chat=to, person=to),
        text=None if file else Document.parse(text),
        file=file,
        began_at=now if began_at is None else began_at,
        expires_at=now + life,
        window_until=window_until,
    )


def a_place(since: int | None = None, cursor: str = "") -> Place:
    """The whole account, since an hour ago."""
    start = SystemClock().now() - 60 * MINUTE if since is None else since
    return Place(chat="", direct=False, cursor=cursor, since=start)
