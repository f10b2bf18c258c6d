"""The OpenAPI document of the API, built on the first request for it: a start needs none."""

from __future__ import annotations

from functools import cache
from typing import Any

from flask_openapi3.models.info import Info
from flask_openapi3.openapi import OpenAPI
from flask_openapi3.types import SecuritySchemesDict

from bullpen import __version__
from bullpen.api.auth import COOKIE
from bullpen.api.errors import ErrorAnswer
from bullpen.api.routes import ROUTES

SECURITY: SecuritySchemesDict = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "The owner's token (the file `token` in the home), or an API key.",
    },
    "cookie": {"type": "apiKey", "in": "cookie", "name": COOKIE},
}

DESCRIPTION = """The API of Bullpen: messages, responses, live events, agents and external workers.

Times are integer milliseconds since 1970, UTC. Lists take `limit` and `since_id`. If there are more
rows, the header `X-Next-Cursor` has the `since_id` of the next page.
"""


class DescribedApp(OpenAPI):
    """An application that serves the OpenAPI document of all routes and its page."""

    @property
    def api_doc(self) -> dict[str, Any]:
        """The OpenAPI document."""
        return describe()


@cache
def describe() -> dict[str, Any]:
    """The OpenAPI document of all routes, as /openapi/openapi.json shows it."""
    described = OpenAPI(
        "bullpen",
        info=Info(title="Bullpen", version=__version__, description=DESCRIPTION),
        security_schemes=SECURITY,
        validation_error_status=400,
        validation_error_model=ErrorAnswer,
        doc_ui=False,
    )
    for routes in ROUTES:
        described.register_api(routes.describe())
    document: dict[str, Any] = described.api_doc
    return document
