"""gunicorn, set up for hundreds of streams, and to stop at once with them open."""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import select
import selectors
import socket
import threading
from functools import partial
from types import FrameType
from typing import Any

from flask_openapi3.openapi import OpenAPI
from gunicorn.app.base import BaseApplication
from gunicorn.glogging import Logger
from gunicorn.http.errors import ParseException
from gunicorn.workers.gthread import TConn, ThreadWorker

from bullpen.api.errors import error_json
from bullpen.api.main import ApiProcess
from bullpen.core.access.keys import KeyKind, list_keys
from bullpen.core.access.owner import ensure_token
from bullpen.core.errors import BadRequest, BadSetting, BullpenError
from bullpen.core.settings import Settings
from bullpen.core.store.open import open_store

log = logging.getLogger(__name__)

GRACE_SECONDS = 10
"""How long requests in progress may take when the process stops."""

KEEPALIVE_SECONDS = 75
"""Longer than the minute that proxies keep a connection, so that they close it first."""

LINGER_MILLIS = 5
"""How long a thread waits for the next request on the connection that it has served."""

WORKER_SECONDS = 60
BACKLOG = 1024
REQUEST_LINE = 8190
"""The longest request line that gunicorn can be set to accept."""


class Worker(ThreadWorker):  # type: ignore[misc] # gunicorn has no types
    """A thread for each request; a stream is handed to the hub and needs none."""

    def enqueue_req(self, conn: TConn) -> None:
        """Serve a connection once there is something to read: a silent one has no thread."""
        if conn.initialized or conn.data_ready:
            super().enqueue_req(conn)
            return
        conn.set_timeout()
        self.pending_conns.append(conn)
        read = partial(self.on_pending_socket_readable, conn)
        self.poller.register(conn.sock, selectors.EVENT_READ, read)

    def handle(self, conn: TConn) -> object:
        """Serve a request, and those that come right behind it.

        gunicorn waits for the next one at the socket, where what it has already read along with
        the last body will never be seen again. And to hand a connection back to its main thread
        and out again costs a third of a request: so it is kept for as long as a busy client takes.
        """
        again = super().handle(conn)
        while again is True and self.alive and _more(conn):
            again = super().handle(conn)
        return again

    def handle_error(
        self, req: object, client: socket.socket, addr: object, exc: Exception
    ) -> None:
        """Refuse malformed or too long requests in the shape of all errors."""
        if isinstance(exc, ParseException):
            log.info("what came was no request: %s", type(exc).__name__)
            status = "400 Bad Request"
            error: BullpenError = BadRequest(f"this is no request: {exc}")
        else:
            log.error("a request failed", exc_info=exc)
            status = "500 Internal Server Error"
            error = BullpenError("something in Bullpen failed", hint="The log has it.")
        body = error_json(error).encode()
        head = (f"HTTP/1.1 {status}", "Connection: close", "Content-Type: application/json")
        text = "\r\n".join((*head, f"Content-Length: {len(body)}", "", "")).encode()
        with contextlib.suppress(OSError):
            client.sendall(text + body)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop, together with open streams and idle connections."""
        super().handle_exit(sig, frame)
        self.method_queue.defer(self._close_idle)
        # In a thread of its own: this one may be interrupted in the middle of anything.
        threading.Thread(target=self._close_streams, name="close streams", daemon=True).start()

    def _close_streams(self) -> None:
        if self.app.process is not None:
            self.app.process.close_streams()

    def _close_idle(self) -> None:
        """Let connections that wait for their next request time out at once."""
        for conn in (*self.keepalived_conns, *self.pending_conns):
            conn.timeout = 0


def _more(conn: TConn) -> bool:
    if conn.parser.unreader.buf.getbuffer().nbytes:
        return True
    poll = select.poll()
    poll.register(conn.sock, select.POLLIN)
    return bool(poll.poll(LINGER_MILLIS))


class Quiet(Logger):  # type: ignore[misc]
    """gunicorn's log lines in the process's own log."""

    def setup(self, cfg: Any) -> None:  # noqa: ANN401 - gunicorn's own
        """Leave the handlers to the process."""
        self.error_log.setLevel(logging.INFO)
        self.error_log.propagate = True


class Server(BaseApplication):  # type: ignore[misc]
    """The API under gunicorn."""

    process: ApiProcess | None = None
    """Created in the process that serves; None until then."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        super().__init__()

    def load_config(self) -> None:
        """Set gunicorn's options."""
        settings = self._settings
        host = f"[{settings.api_host}]" if ":" in settings.api_host else settings.api_host
        options: dict[str, object] = {
            "bind": f"{host}:{settings.api_port}",
            "worker_class": Worker,
            "workers": settings.api_processes,
            "threads": settings.api_threads,
            "worker_connections": settings.api_threads + settings.api_streams,
            "backlog": BACKLOG,
            "reuse_port": settings.api_processes > 1,
            "limit_request_line": REQUEST_LINE,
            "keepalive": KEEPALIVE_SECONDS,
            "timeout": WORKER_SECONDS,
            "graceful_timeout": GRACE_SECONDS,
            "logger_class": Quiet,
            "control_socket_disable": True,
            "proc_name": "bullpen-api",
            "worker_exit": _stopped,
            "forwarded_allow_ips": "",
        }
        for name, each in options.items():
            self.cfg.set(name, each)

    def load(self) -> OpenAPI:
        """Create the application, in the process that serves it."""
        self.process = ApiProcess(self._settings)
        self.process.start()
        return self.process.app


def _stopped(_: object, worker: Worker) -> None:
    if worker.app.process is not None:
        worker.app.process.stop()


def run(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT."""
    ensure_token(settings)
    _check_exposure(settings)
    Server(settings).run()


def _check_exposure(settings: Settings) -> None:
    """Refuse to listen beyond this machine while there is no key."""
    store = open_store(settings)
    try:
        with store.read() as tx:
            keys = [key for key in list_keys(tx) if key.kind is KeyKind.KEY and key.valid(tx.now)]
    finally:
        store.close()
    if not _is_loopback(settings.api_host):
        if not keys:
            raise BadSetting(
                f"the API would listen on {settings.api_host}, and there is no key yet",
                hint="Make one with `bullpen key add`, or leave the setting api_host at 127.0.0.1.",
            )
        log.warning("the API listens on %s, beyond this machine", settings.api_host)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
