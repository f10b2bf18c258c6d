"""A fake of Twilio: the REST API for messages, signed webhooks, status callbacks and media."""

from __future__ import annotations

from tests.channels.fakes.twilio.harness import TwilioHarness
from tests.channels.fakes.twilio.messages import ACCOUNT_SID, AUTH_TOKEN, NUMBER
from tests.channels.fakes.twilio.platform import FakeSms, FakeTwilio, FakeWhatsApp
from tests.channels.fakes.twilio.rest import API_KEY, API_SECRET, SERVICE_SID, TEMPLATE
from tests.channels.fakes.twilio.webhooks import sign_form

__all__ = [
    "ACCOUNT_SID",
    "API_KEY",
    "API_SECRET",
    "AUTH_TOKEN",
    "NUMBER",
    "SERVICE_SID",
    "TEMPLATE",
    "FakeSms",
    "FakeTwilio",
    "FakeWhatsApp",
    "TwilioHarness",
    "sign_form",
]
