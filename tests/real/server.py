"""A loopback server in a model's place, which asks a script for its answers."""

from __future__ import annotations

import contextlib
import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import socket
from socketserver import BaseServer
from typing import Self

from tests.real.reply import Body, Hang, Refuse, Reply, Say, UseTool

Script = Callable[[Body], Reply]


@dataclass(frozen=True)
class Request:
    """One request for an answer, as it arrived; header names are in lower case."""

    body: Body
    headers: dict[str, str]


def events(of: Iterable[Body]) -> str:
    """Server-sent events, each named by its `type`."""
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in of)


def in_order(*replies: Reply) -> Script:
    """These, one after the other."""
    left = list(replies)

    def script(body: Body) -> Reply:
        assert left, f"nobody was to ask again, after {len(replies)} replies"
        return left.pop(0)

    return script


class ModelServer(ABC):
    """An HTTP server on a free port of 127.0.0.1 while its context lasts.

    What the script raises is raised again at the end of the context.
    """

    def __init__(self) -> None:
        """Take the port; the answers begin with the context."""
        self.requests: list[Request] = []
        self.closing = threading.Event()
        self.script: Script = in_order()
        self._failures: list[Exception] = []
        self._lock = threading.Lock()
        handler = partial(_Handler, self)
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    @property
    def address(self) -> str:
        """Where the server listens, without a path."""
        return f"http://127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
        if self._failures and kind is None:
            raise self._failures[0]

    def answers(self, *replies: Reply) -> None:
        """Reply with these, one request after the other, and expect no more."""
        self.script = in_order(*replies)

    def reply(self, request: Request) -> Reply:
        """Note the request and ask the script."""
        self.requests.append(request)
        try:
            with self._lock:
                return self.script(request.body)
        except Exception as failure:
            self._failures.append(failure)
            return Refuse(400, message=f"the script failed: {failure!r}")

    @property
    @abstractmethod
    def url(self) -> str:
        """The base URL."""

    @abstractmethod
    def prompt(self, body: Body) -> str:
        """What the user said last."""

    @abstractmethod
    def told(self, body: Body) -> str:
        """What the model is told about itself."""

    @abstractmethod
    def tool_result(self, body: Body) -> str | None:
        """The result of the tool call just made, if the request brings one."""

    @abstractmethod
    def session(self, request: Request) -> str:
        """The session that the request belongs to."""

    @abstractmethod
    def wants_answer(self, path: str) -> bool:
        """Whether a POST to this path is a question for the script."""

    @abstractmethod
    def answer(self, body: Body, reply: Say | UseTool) -> str | Body:
        """The reply in the words of the protocol: events as text, or one JSON object."""

    @abstractmethod
    def refusal(self, reply: Refuse) -> Body:
        """The body of an error."""

    @abstractmethod
    def aside(self, path: str) -> Body:
        """The answer to everything that is no question."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(
        self, model: ModelServer, request: socket, address: tuple[str, int], server: BaseServer
    ) -> None:
        self._model = model
        # A client that was killed is not worth a traceback.
        with contextlib.suppress(ConnectionError):
            super().__init__(request, address, server)

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._send({})

    def do_GET(self) -> None:
        # `codex` may ask for a websocket first, and tries again for seconds after another answer.
        if self.headers.get("upgrade") == "websocket":
            return self._send({}, 426)
        return self._send(self._model.aside(self._path))

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers.get("content-length", 0)))
        if not self._model.wants_answer(self._path):
            return self._send(self._model.aside(self._path))
        body: Body = json.loads(content)
        headers = {name.lower(): value for name, value in self.headers.items()}
        match self._model.reply(Request(body, headers)):
            case Hang():
                self._model.closing.wait()
                self.close_connection = True
            case Refuse() as refuse:
                self._send(self._model.refusal(refuse), refuse.status, refuse.headers)
            case reply:
                self._send(self._model.answer(body, reply))
        return None

    @property
    def _path(self) -> str:
        return self.path.partition("?")[0]

    def _send(
        self, content: str | Body, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        kind, text = "text/event-stream", content
        if not isinstance(text, str):
            kind, text = "application/json", json.dumps(text)
        data = text.encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        # A connection that is kept would outlive the context.
        self.send_header("connection", "close")
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
