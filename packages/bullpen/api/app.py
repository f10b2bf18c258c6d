"""The Flask application: its routes, its errors and the access check in front of them."""

from __future__ import annotations

import json
import logging
import time
from typing import Any

from flask import Flask, Response, current_app, g, request
from flask.json.provider import DefaultJSONProvider
from flask_openapi3.openapi import OpenAPI

from bullpen.api import auth, errors, metrics
from bullpen.api.context import EXTENSION, Api
from bullpen.api.description import DescribedApp
from bullpen.api.errors import validation_error_response
from bullpen.api.routes import ROUTES
from bullpen.core.errors import BadRequest
from bullpen.core.logs import REQUEST_ID
from bullpen.core.strict_json import read_json

log = logging.getLogger("bullpen.api.request")


class StrictJson(DefaultJSONProvider):
    """Reads the bodies of requests; invalid JSON is reported to the client."""

    def loads(self, s: str | bytes, **_: Any) -> Any:  # noqa: ANN401 - as Flask declares it
        """Return the value of this JSON."""
        try:
            text = s if isinstance(s, str) else s.decode(json.detect_encoding(s))
        except UnicodeDecodeError:
            raise BadRequest("the body is not valid UTF-8") from None
        try:
            return read_json(text)
        except ValueError as error:
            raise BadRequest(f"the body is not valid JSON: {error}") from None


def create_app(shared: Api) -> OpenAPI:
    """Create the application."""
    app = DescribedApp(
        "bullpen", validation_error_callback=validation_error_response, static_folder=None
    )
    app.json = StrictJson(app)
    app.extensions[EXTENSION] = shared
    app.extensions[metrics.EXTENSION] = metrics.Metrics(shared.store, shared.hub)
    app.config["MAX_CONTENT_LENGTH"] = shared.settings.body_bytes
    app.config["MAX_FORM_MEMORY_SIZE"] = shared.settings.body_bytes
    errors.install(app)
    _log_requests(app)
    auth.install(app)
    for routes in ROUTES:
        app.register_api(routes.blueprint)
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
