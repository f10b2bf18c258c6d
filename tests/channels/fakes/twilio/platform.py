"""The server of the fake of Twilio."""

from __future__ import annotations

from aiohttp import web

from tests.channels.fakes.base import FakePlatform
from tests.channels.fakes.twilio.messages import ACCOUNT_SID
from tests.channels.fakes.twilio.people import People
from tests.channels.fakes.twilio.rest import SERVICE_SID, Rest


class FakeTwilio(People, Rest):
    """Twilio on loopback, with one account and one number."""

    controls = FakePlatform.controls | {"say", "texts_in"}

    def add_routes(self, router: web.UrlDispatcher) -> None:
        account = f"/2010-04-01/Accounts/{ACCOUNT_SID}"
        router.add_post(f"{account}/Messages.json", self._create)
        router.add_get(f"{account}/Messages.json", self._list)
        router.add_get(f"{account}/Messages/{{sid}}/Media.json", self._list_media)
        router.add_get(f"{account}/Messages/{{sid}}/Media/{{media}}", self._redirect_media)
        router.add_get(f"{account}/IncomingPhoneNumbers.json", self._numbers)
        router.add_get(f"{account}.json", self._account)
        router.add_post("/v2/Indicators/Typing.json", self._type)
        router.add_get("/v2/Channels/Senders", self._senders)
        router.add_get("/cdn/{media}", self._send_media)
        router.add_get(f"/v1/Services/{SERVICE_SID}", self._service)
        router.add_route("*", "/{rest:.*}", self._unknown)


class FakeSms(FakeTwilio):
    """A number for SMS."""

    channel = "sms"


class FakeWhatsApp(FakeTwilio):
    """A number for WhatsApp."""

    channel = "whatsapp"
