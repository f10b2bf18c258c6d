"""An answer that does not end: its socket is the hub's, and its thread is for the next request."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from email.utils import formatdate
from typing import TYPE_CHECKING

from flask import Response

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


class Handover(Response):
    """The head of an answer; what comes after it is written by whoever has the socket."""

    def __init__(self, mimetype: str, then: Callable[[bytes], None]) -> None:
        super().__init__(mimetype=mimetype)
        self._then = then

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Give the head away, and let gunicorn close its own copy of the socket in silence."""
        self.headers.pop("Content-Length", None)
        self.headers["Date"] = formatdate(usegmt=True)
        self.headers["Connection"] = "close"
        lines = [f"HTTP/1.1 {self.status}", *(f"{name}: {text}" for name, text in self.headers)]
        self._then("\r\n".join([*lines, "", ""]).encode("latin-1"))
        raise StopIteration
