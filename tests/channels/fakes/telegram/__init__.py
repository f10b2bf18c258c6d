"""A fake of Telegram's Bot API on loopback: methods, long polling, webhooks, files and errors."""

from __future__ import annotations

from tests.channels.fakes.telegram.chats import BOT_ID, TOKEN, TelegramPost
from tests.channels.fakes.telegram.harness import GROUP, SEND, TelegramHarness
from tests.channels.fakes.telegram.platform import FakeTelegram

__all__ = [
    "BOT_ID",
    "GROUP",
    "SEND",
    "TOKEN",
    "FakeTelegram",
    "TelegramHarness",
    "TelegramPost",
]
