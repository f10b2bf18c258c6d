"""A platform on Telegram without the base client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from bullpen.channels.platform import Address, Button, ChannelContext, Sending
from bullpen.channels.telegram.platform import Telegram
from bullpen.channels.text.tree import Document
from bullpen.core.answers.attachments import OpenFile
from tests.channels.fakes.telegram import TOKEN, FakeTelegram
from tests.channels.recording import RecordingIntake, make_context

PERSON = 1001
CHAT = "1001"
GROUP = "-1001000000001"


def context(fake: FakeTelegram, account: str = "telegram", **settings: str) -> ChannelContext:
    """The context of an account that uses the fake."""
    given = {"bot_token": TOKEN, "api_url": fake.url, "transport": "poll", **settings}
    return make_context(account, given)


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
            assert not intake.unreadable
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def ask_updates(telegram: Telegram, seconds: int = 0, offset: int = 0) -> list[object]:
    """Ask for updates once, as another process does."""
    found = await telegram._api.call("getUpdates", offset=offset, limit=100, timeout=seconds)
    assert isinstance(found, list)
    return found


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
