"""The fake of Telegram keeps what Telegram keeps, and delays what Telegram delays."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from tests.channels.fakes.driven import RemoteFake
from tests.channels.fakes.telegram import FakeTelegram
from tests.channels.telegram.double import CHAT, PERSON, ask_updates, started


def test_a_killed_fake_keeps_its_chats_posts_and_unconfirmed_updates(tmp_path: Path) -> None:
    with RemoteFake("telegram", tmp_path) as remote:
        fake = remote.process
        said = [fake.call("say", chat=CHAT, person=PERSON, text=each) for each in ("a", "b", "c")]
        numbers = [int(str(each)) for each in said]
        fake.kill()
        fake.start()
        assert fake.call("unacked") == numbers
        assert int(str(fake.call("say", chat=CHAT, person=PERSON, text="d"))) > numbers[-1]


def test_the_same_offset_is_held_for_three_seconds(fake: FakeTelegram) -> None:
    """A loop that asks again at once, for example while the database is busy, is slowed down."""

    async def ask() -> float:
        async with started(fake) as telegram:
            await ask_updates(telegram)
            began = time.monotonic()
            await ask_updates(telegram)
            return time.monotonic() - began

    assert asyncio.run(ask()) > 2.5


def test_the_same_offset_within_half_a_second_gets_one_update(fake: FakeTelegram) -> None:
    async def ask() -> list[int]:
        async with started(fake) as telegram:
            for each in "abc":
                fake.say(CHAT, PERSON, each)
            return [len(await ask_updates(telegram)) for _ in range(2)]

    assert asyncio.run(ask()) == [3, 1]
