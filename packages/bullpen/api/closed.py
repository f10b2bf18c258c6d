"""The API while settings.toml has no valid database: it answers 503 and waits.

The default database would be the wrong one. When the file is fixed, the process ends, and its
supervisor starts it again with the database.
"""

from __future__ import annotations

import logging
import os
import socket
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from bullpen.api.errors import error_json
from bullpen.core.background import StopSignals
from bullpen.core.errors import BadSetting
from bullpen.core.settings import Settings
from bullpen.core.settings.parse import load_lenient
from bullpen.core.store.open import has_valid_database_url

log = logging.getLogger(__name__)

POLL_SECONDS = 1.0
ALIVE = "/healthz"

# The file's contents are not shown: no caller is authenticated here.
UNAVAILABLE = BadSetting(
    "settings.toml has no valid database_url, so the API serves no requests",
    hint="`bullpen config check` shows the line. The API resumes when the file is fixed.",
)


class UnavailableHandler(BaseHTTPRequestHandler):
    """Gives every request the same response."""

    def answer(self) -> None:
        """Answer the liveness check, and everything else with the error."""
        alive = self.path == ALIVE
        body = b'{"ok":true}' if alive else error_json(UNAVAILABLE).encode()
        self.send_response(HTTPStatus.OK if alive else HTTPStatus.SERVICE_UNAVAILABLE)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815 - its names

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing, because all responses are the same."""


def run(settings: Settings) -> None:
    """Serve until SIGTERM, SIGINT, or a valid file."""
    ending = StopSignals()
    kind = type("Server", (ThreadingHTTPServer,), {"address_family": _family(settings)})
    server: ThreadingHTTPServer = kind((settings.api_host, settings.api_port), UnavailableHandler)
    thread = Thread(target=server.serve_forever, name="serve", daemon=True)
    thread.start()
    log.error("%s. %s", UNAVAILABLE, UNAVAILABLE.hint)
    while not ending.wait(POLL_SECONDS):
        loaded, _ = load_lenient(os.environ)
        if has_valid_database_url(loaded):
            log.info("database_url is valid now: restarting the API")
            break
    server.shutdown()
    server.server_close()


def _family(settings: Settings) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in settings.api_host else socket.AF_INET
