"""The server of the fake of Telegram."""

from __future__ import annotations

from aiohttp import web

from tests.channels.fakes.base import FakePlatform
from tests.channels.fakes.telegram.methods import Methods
from tests.channels.fakes.telegram.people import People


class FakeTelegram(People, Methods):
    """Telegram with one bot. What people do are its methods; what they see is `posts`."""

    controls = FakePlatform.controls | {"say", "unacked"}

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_route("*", "/bot{token}/{method}", self._call)
        router.add_get("/file/bot{token}/{path:.+}", self._download)
