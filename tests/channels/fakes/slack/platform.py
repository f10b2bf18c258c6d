"""The server of the fake of Slack."""

from __future__ import annotations

from aiohttp import web

from tests.channels.fakes.slack.people import People
from tests.channels.fakes.slack.web_api import WebApi


class FakeSlack(People, WebApi):
    """Slack on loopback, with one workspace and one app."""

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_route("*", "/api/{method}", self._api)
        router.add_get("/link", self._socket)
        router.add_post("/upload/{file}", self._upload)
        router.add_get("/files-pri/{file}/{name:.*}", self._download)
