"""gunicorn, configured for hundreds of streams, and for stopping at once while they are open."""

from __future__ import annotations

import errno
import logging
import signal
import socket
import threading
from collections.abc import Iterable
from concurrent.futures import Future
from http import HTTPStatus
from types import FrameType
from typing import Any

from flask_openapi3.openapi import OpenAPI
from gunicorn.app.base import BaseApplication
from gunicorn.glogging import Logger
from gunicorn.http import wsgi
from gunicorn.http.errors import ParseException
from gunicorn.http.message import Request
from gunicorn.http.unreader import IterUnreader
from gunicorn.workers.gthread import ThreadWorker

from bullpen.api.connection import Connection, Received
from bullpen.api.connection_table import CHECK_SECONDS, ConnectionTable, Limits, Then
from bullpen.api.errors import error_json
from bullpen.api.framing import MAX_REQUEST_LINE
from bullpen.api.main import ApiProcess
from bullpen.core.access.keys import KeyKind, list_keys
from bullpen.core.access.owner import ensure_token
from bullpen.core.errors import BadRequest, BadSetting, BullpenError
from bullpen.core.network import is_loopback, listen_addresses
from bullpen.core.settings import Settings
from bullpen.core.store.open import open_store
from bullpen.ops.services.launch import terminate_with_parent

log = logging.getLogger(__name__)

GRACE_SECONDS = 10
"""How long requests in progress may take when the process stops."""

KEEPALIVE_SECONDS = 75
"""Longer than the minute that proxies keep a connection, so that they close it first."""

LINGER_MILLIS = 5
"""How long a thread waits for the next request on the connection that it has served."""

WORKER_SECONDS = 60
BACKLOG = 1024
BODY_THREADS_SHARE = 4
"""One in this many threads may wait for request bodies."""

SEND_AHEAD_BYTES = 256 << 10
"""While more bytes of a response are unsent, its next piece is not produced."""

_NO_CONNECTION = (errno.EAGAIN, errno.ECONNABORTED, errno.EWOULDBLOCK)


class Worker(ThreadWorker):  # type: ignore[misc] # gunicorn has no types
    """Serves each request in a thread; a stream is handed to the hub and needs no thread."""

    def run(self) -> None:
        """Serve until the process stops."""
        settings = self.app.settings
        self._seconds = (settings.api_request_seconds, settings.api_stall_seconds)
        limits = Limits(
            connections=self.cfg.worker_connections,
            waiting=settings.api_address_connections,
            bodies=settings.api_threads // BODY_THREADS_SHARE,
            keep_alive_seconds=self.cfg.keepalive,
        )
        self.connections = ConnectionTable(
            self.poller, limits, self.enqueue_req, _refuse, self._count_closed
        )
        super().run()

    def accept(self, listener: socket.socket) -> None:
        """Take a new connection."""
        try:
            sock, client = listener.accept()
        except OSError as error:
            if error.errno not in _NO_CONNECTION:
                raise
            return
        self.nr_conns += 1
        self.connections.add(Connection(sock, client, listener.getsockname(), *self._seconds))

    def handle(self, conn: Connection) -> Then:
        """Serve a request, and the requests that follow it at once.

        Handing a connection back to the main thread and out again costs a third of a request, so
        the thread keeps the connection for as long as a busy client needs.
        """
        then = self._serve(conn)
        while then is Then.KEEP and self.alive:
            then, again = self._after(conn)
            if not again:
                break
            then = self._serve(conn)
        return then

    def finish_request(self, conn: Connection, fs: Future[Then]) -> None:
        """Take back a connection that a thread has served; the main thread calls this."""
        then = Then.CLOSE if fs.cancelled() or fs.exception() else fs.result()
        if then is Then.KEEP and not self.alive:
            then = Then.CLOSE
        self.connections.give_back(conn, then)

    def wait_for_and_dispatch_events(self, timeout: float) -> None:
        """Wait until a connection is ready, or its deadline has passed."""
        if self.connections.busy:
            timeout = min(timeout, CHECK_SECONDS)
        super().wait_for_and_dispatch_events(timeout)

    def murder_pending(self) -> None:
        """Close the connections whose deadline has passed."""
        self.connections.check()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop, and end open streams and idle connections."""
        super().handle_exit(sig, frame)
        self.method_queue.defer(self._close_listeners)
        self.method_queue.defer(self._stop_waiting)
        # In a separate thread, because a signal handler may interrupt any code of this one.
        threading.Thread(target=self._close_streams, name="close streams", daemon=True).start()

    def is_parent_alive(self) -> bool:
        """Whether the main process is alive; otherwise this process stops as with SIGTERM."""
        alive: bool = super().is_parent_alive()
        if not alive and self.alive:
            self.handle_exit(signal.SIGTERM, None)
        return alive

    def _close_listeners(self) -> None:
        """Free the port for the next process, while the requests in progress end."""
        self.set_accept_enabled(False)
        for each in self.sockets:
            each.close()

    def _close_streams(self) -> None:
        if self.app.process is not None:
            self.app.process.close_streams()

    def _stop_waiting(self) -> None:
        self.connections.stop()

    def _count_closed(self) -> None:
        self.nr_conns -= 1

    def _serve(self, conn: Connection) -> Then:
        """Serve one request, or continue its response."""
        try:
            answer = conn.answer = conn.answer or self._begin(conn)
            if not answer.write(conn):
                return Then.CONTINUE
            conn.answer = None
            return Then.CLOSE if answer.ends else Then.KEEP
        except StopIteration:  # the hub has a copy of the socket
            conn.answer = None
        except ParseException as error:
            _refuse(conn, BadRequest(f"malformed request: {error}"))
        except OSError as error:
            log.debug("closed a connection: %s", error)
        except Exception as error:
            log.error("a request failed", exc_info=error)
            if conn.answer is None:
                failed = BullpenError("internal error", hint="The log of the API has the details.")
                _refuse(conn, failed)
        return Then.CLOSE

    def _begin(self, conn: Connection) -> WsgiAnswer:
        """Start the application's response."""
        assert conn.head is not None
        request = Request(self.cfg, IterUnreader([conn.head.text]), conn.client, conn.requests)
        request.body = conn.body()
        request._expected_100_continue = False  # the reader of the body sends it
        response, environ = wsgi.create(request, conn, conn.client, conn.server, self.cfg)
        environ["gunicorn.socket"] = conn.sock
        environ["wsgi.multithread"] = True
        if not self.alive:
            response.force_close()
        return WsgiAnswer(response, self.wsgi(environ, response.start_response))

    def _after(self, conn: Connection) -> tuple[Then, bool]:
        """Return the next step after a response, and whether the next request has arrived."""
        try:
            if not conn.flush():
                return Then.KEEP, False
            received = conn.receive_soon(LINGER_MILLIS)
        except BadRequest as error:
            _refuse(conn, error)
            return Then.CLOSE, False
        except OSError:
            return Then.CLOSE, False
        ended = received is Received.END
        return Then.CLOSE if ended else Then.KEEP, received is Received.REQUEST


class WsgiAnswer:
    """The application's response, produced piece by piece as the client reads it."""

    def __init__(self, response: Any, pieces: Any) -> None:  # noqa: ANN401 - gunicorn's, WSGI's
        self._response = response
        self._pieces = pieces
        self._rest: Iterable[bytes] = iter(pieces)

    @property
    def ends(self) -> bool:
        """Whether the connection is closed after it."""
        return bool(self._response.should_close())

    def write(self, connection: Connection) -> bool:
        """Write pieces; false if the client must read them before the next ones."""
        if not connection.keepable:
            self._response.force_close()
        if isinstance(self._pieces, wsgi.FileWrapper):
            self._response.write_file(self._pieces)
        else:
            for piece in self._rest:
                self._response.write(piece)
                if connection.unsent > SEND_AHEAD_BYTES and not connection.flush():
                    return False
        self._response.close()
        self.close()
        return True

    def close(self) -> None:
        """Release its resources."""
        if hasattr(self._pieces, "close"):
            self._pieces.close()


def _refuse(conn: Connection, error: BullpenError) -> None:
    """Answer a request that does not reach the application, in the common form of errors."""
    log.info("refused a request: %s", error)
    body = error_json(error).encode()
    status = error.http_status
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        "Connection: close",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    )
    conn.send("\r\n".join((*head, "", "")).encode() + body)


class Quiet(Logger):  # type: ignore[misc]
    """gunicorn's log lines in the process's own log."""

    def setup(self, cfg: Any) -> None:  # noqa: ANN401 - gunicorn's own
        """Leave the handlers to the process."""
        self.error_log.setLevel(logging.INFO)
        self.error_log.propagate = True

    def info(self, msg: str, *args: object, **kwargs: Any) -> None:  # noqa: ANN401 - gunicorn's own
        """Log the addresses: gunicorn's own line has none if each worker opens its sockets."""
        if msg.startswith("Listening at"):
            addresses = ", ".join(f"http://{each}" for each in self.cfg.bind)
            self.error_log.info("listening on %s", addresses)
        else:
            super().info(msg, *args, **kwargs)


class Server(BaseApplication):  # type: ignore[misc]
    """The API under gunicorn."""

    process: ApiProcess | None = None
    """Created in the process that serves; None until then."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        super().__init__()

    def load_config(self) -> None:
        """Set gunicorn's options."""
        settings = self.settings
        addresses = [
            f"[{host}]:{settings.api_port}" if ":" in host else f"{host}:{settings.api_port}"
            for host in listen_addresses(settings)
        ]
        options: dict[str, object] = {
            "bind": addresses,
            "worker_class": Worker,
            "workers": settings.api_processes,
            "threads": settings.api_threads,
            "worker_connections": settings.api_threads + settings.api_streams,
            "backlog": BACKLOG,
            "reuse_port": settings.api_processes > 1,
            "limit_request_line": MAX_REQUEST_LINE,
            "keepalive": KEEPALIVE_SECONDS,
            "timeout": WORKER_SECONDS,
            "graceful_timeout": GRACE_SECONDS,
            "logger_class": Quiet,
            "control_socket_disable": True,
            "proc_name": "bullpen-api",
            "post_fork": _forked,
            "worker_exit": _stopped,
            "forwarded_allow_ips": "",
        }
        for name, each in options.items():
            self.cfg.set(name, each)

    def load(self) -> OpenAPI:
        """Create the application, in the process that serves it."""
        self.process = ApiProcess(self.settings)
        self.process.start()
        return self.process.app


def _forked(_: object, worker: Worker) -> None:
    terminate_with_parent(worker.ppid)


def _stopped(_: object, worker: Worker) -> None:
    if worker.app.process is not None:
        worker.app.process.stop()


def run(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT."""
    ensure_token(settings)
    _check_exposure(settings)
    Server(settings).run()


def _check_exposure(settings: Settings) -> None:
    """Refuse to listen on an address that other machines can reach while there is no key."""
    store = open_store(settings)
    try:
        with store.read() as tx:
            keys = [key for key in list_keys(tx) if key.kind is KeyKind.KEY and key.valid(tx.now)]
    finally:
        store.close()
    if not is_loopback(settings.api_host):
        if not keys:
            raise BadSetting(
                f"api_host is {settings.api_host}, which other machines can reach, and there is no "
                "API key",
                hint="Create a key with `bullpen key add`, or set `api_host` to 127.0.0.1.",
            )
        log.warning("other machines can reach the API on %s", settings.api_host)
