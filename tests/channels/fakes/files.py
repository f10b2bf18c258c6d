"""A fake of a platform's file hosts: what is put on a path is served there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

from aiohttp import web

from tests.channels.fakes.base import FakePlatform, Options


class FileHost(FakePlatform):
    """A host of files."""

    def __init__(self, port: int = 0, **options: Unpack[Options]) -> None:
        super().__init__(port, **options)
        self.answers: dict[str, web.Response] = {}
        self.chunked: set[str] = set()
        """The paths whose answers have no Content-Length."""

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_get("/{path:.*}", self._serve)

    def put(
        self,
        path: str,
        body: bytes = b"",
        type_: str = "application/octet-stream",
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> str:
        """Serve this at a path; returns its URL."""
        answer = web.Response(body=body, status=status, headers=headers, content_type=type_)
        self.answers[path] = answer
        return f"{self.url}{path}"

    def redirect(self, path: str, to: str) -> str:
        """Redirect a path."""
        return self.put(path, status=302, headers={"Location": to})

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        kept = self.answers.get(request.path)
        if kept is None:
            raise web.HTTPNotFound
        answer = web.Response(body=kept.body, status=kept.status, headers=kept.headers)
        if request.path in self.chunked:
            answer.enable_chunked_encoding()
        return answer
