"""The fake of each channel, and the harness that drives it."""

from __future__ import annotations

from dataclasses import dataclass

from tests.channels.fakes.base import FakePlatform
from tests.channels.fakes.discord import DiscordHarness, FakeDiscord
from tests.channels.fakes.harness import Harness
from tests.channels.fakes.slack import FakeSlack, SlackHarness
from tests.channels.fakes.telegram import FakeTelegram, TelegramHarness
from tests.channels.fakes.twilio import FakeSms, FakeWhatsApp, TwilioHarness


@dataclass(frozen=True, slots=True)
class Fake:
    """The classes of one channel."""

    platform: type[FakePlatform]
    harness: type[Harness]


FAKES = {
    "slack": Fake(FakeSlack, SlackHarness),
    "sms": Fake(FakeSms, TwilioHarness),
    "whatsapp": Fake(FakeWhatsApp, TwilioHarness),
    "discord": Fake(FakeDiscord, DiscordHarness),
    "telegram": Fake(FakeTelegram, TelegramHarness),
}
