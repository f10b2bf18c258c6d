"""The smallest fake: it keeps what is posted to it. It shows and tests what all fakes have."""

from __future__ import annotations

from typing import Unpack

from aiohttp import web

from tests.channels.fakes.base import FakePlatform, Options
from tests.channels.fakes.process import serve


class Recorder(FakePlatform):
    """A platform with two endpoints: `POST /send` and `GET /sent`."""

    controls = FakePlatform.controls | {"count"}

    def __init__(self, port: int = 0, **options: Unpack[Options]) -> None:
        super().__init__(port, **options)
        self.sent: list[object] = []

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_post("/send", self._send)
        router.add_get("/sent", self._list)
        router.add_post("/broken", self._broken)

    def recall(self, record: dict[str, object]) -> None:
        self.sent.append(record["text"])

    def count(self) -> int:
        """How many were sent."""
        return len(self.sent)

    async def _send(self, request: web.Request) -> web.Response:
        record = {"text": (await request.json())["text"]}
        self.remember(record)
        self.recall(record)
        return web.json_response({"ok": True, "number": len(self.sent)})

    async def _list(self, request: web.Request) -> web.Response:
        return web.json_response(self.sent)

    async def _broken(self, request: web.Request) -> web.Response:
        raise ValueError("a mistake in the fake")


if __name__ == "__main__":
    serve(Recorder)
