"""The fake of Telegram, known to the tests of its channel."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.channels.fakes.telegram import FakeTelegram
from tests.channels.telegram.double import CHAT, GROUP


@pytest.fixture
def fake() -> Iterator[FakeTelegram]:
    """Telegram with a private chat and a group."""
    with FakeTelegram() as running:
        running.add_chat(CHAT)
        running.add_chat(GROUP)
        yield running
