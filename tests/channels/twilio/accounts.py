"""An account of Twilio in a test: the platform with its settings."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from bullpen.channels.platform import Address, Place, Sending
from bullpen.channels.text.tree import Document
from bullpen.channels.twilio.platform import Sms, WhatsApp
from bullpen.core.answers.attachments import OpenFile
from bullpen.core.clock import HOUR, MINUTE, SystemClock
from tests.channels.fakes.twilio import FakeTwilio, TwilioHarness
from tests.channels.recording import RecordingIntake, make_context, until

NOTHING: Mapping[str, str] = {}
ANN = "+15551000001"


def make_platform(
    fake: FakeTwilio,
    directory: Path,
    settings: Mapping[str, str] = NOTHING,
    clock: SystemClock | None = None,
) -> Sms | WhatsApp:
    """The platform of an account with these settings in place of the harness's."""
    given = TwilioHarness(fake).settings() | dict(settings)
    context = make_context(fake.channel, given, directory=directory, clock=clock, store_id="ABCD")
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
        try:
            await until(lambda: intake.calls or task.done())
            if task.done():
                task.result()
            yield platform, intake
            await asyncio.to_thread(fake.wait_for, fake.settled)
            assert not intake.unreadable
            assert not intake.lost
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


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
