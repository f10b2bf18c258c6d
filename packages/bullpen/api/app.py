"""The Flask application: its routes, its errors and the access check in front of them."""

from __future__ import annotations

import logging
import time

from flask import Flask, Response, current_app, g, request
from flask_openapi3.models.info import Info
from flask_openapi3.openapi import OpenAPI
from flask_openapi3.types import SecuritySchemesDict

from bullpen import __version__
from bullpen.api import auth, errors, metrics
from bullpen.api.auth import COOKIE
from bullpen.api.context import EXTENSION, Api
from bullpen.api.errors import ErrorAnswer, validation_error_response
from bullpen.api.routes import ROUTES
from bullpen.core.logs import REQUEST_ID

log = logging.getLogger("bullpen.api.request")

SECURITY: SecuritySchemesDict = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "The owner's token (the file `token` of the home), or a key.",
    },
    "cookie": {"type": "apiKey", "in": "cookie", "name": COOKIE},
}

DESCRIPTION = """The API of Bullpen: messages in, answers out, live events, and outside workers.

Times are integer milliseconds since 1970, UTC. Lists take `limit` and `since_id`; where there is
more, the header `X-Next-Cursor` has what to give as `since_id` for the next page.
"""


def create_app(shared: Api) -> OpenAPI:
    """The application over this store."""
    app = OpenAPI(
        "bullpen",
        info=Info(title="Bullpen", version=__version__, description=DESCRIPTION),
        security_schemes=SECURITY,
        validation_error_status=400,
        validation_error_model=ErrorAnswer,
        validation_error_callback=validation_error_response,
        static_folder=None,
    )
    app.extensions[EXTENSION] = shared
    app.extensions[metrics.EXTENSION] = metrics.Metrics(shared.store, shared.hub)
    app.config["MAX_CONTENT_LENGTH"] = shared.settings.body_bytes
    app.config["MAX_FORM_MEMORY_SIZE"] = shared.settings.body_bytes
    errors.install(app)
    _log_requests(app)
    auth.install(app)
    for blueprint in ROUTES:
        app.register_api(blueprint)
    return app


def _log_requests(app: Flask) -> None:
    app.before_request(_begin)
    app.after_request(_end)


def _begin() -> None:
    g.began = time.perf_counter()
    REQUEST_ID.set("")


def _end(response: Response) -> Response:
    """Log a line for each request, never with its query string or a header."""
    key = g.get("caller")
    seconds = time.perf_counter() - g.began
    metrics.metrics_of(current_app).count(response.status_code, seconds)
    fields = {
        "method": request.method,
        "path": request.path,
        "status": response.status_code,
        "ms": round(seconds * 1000, 1),
        "key": "-" if key is None else key.id,
        "from": request.remote_addr,
    }
    REQUEST_ID.set(str(g.get("request_id", "")))
    log.info("request", extra={"fields": fields})
    return response
