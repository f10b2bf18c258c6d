"""A fake of Discord for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.channels.fakes.discord import FakeDiscord


@pytest.fixture
def fake() -> Iterator[FakeDiscord]:
    with FakeDiscord() as fake:
        yield fake
