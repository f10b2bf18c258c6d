"""A fake of Twilio for each test: a number for SMS, and one for WhatsApp."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.channels.fakes.twilio import FakeSms, FakeTwilio, FakeWhatsApp


@pytest.fixture
def sms() -> Iterator[FakeTwilio]:
    with FakeSms() as fake:
        yield fake


@pytest.fixture
def whatsapp() -> Iterator[FakeTwilio]:
    with FakeWhatsApp() as fake:
        yield fake
