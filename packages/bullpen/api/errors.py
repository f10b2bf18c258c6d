"""Errors of the API, all in the same form."""

from __future__ import annotations

import json
import logging

from flask import Flask, Response, g, request
from pydantic import BaseModel, Field, ValidationError
from werkzeug.exceptions import ClientDisconnected, HTTPException

from bullpen.core.errors import (
    BadRequest,
    BodyTooLarge,
    BullpenError,
    DuplicateMessage,
    NotFound,
    NotJson,
)

log = logging.getLogger(__name__)

RETRY_SECONDS = {429: "60", 503: "1"}

MAX_LISTED_ERRORS = 5
"""The maximum number of validation errors in one response."""


PAGES = "pages"
"""The blueprint of the pages."""

ROUTES_HINT = "`/openapi/swagger` lists all routes."
MAX_QUOTED_PATH = 100


class ErrorAnswer(BaseModel):
    """An error."""

    error: str = Field(description="The text; TinyAGI's clients show it.")
    code: str = Field(description="A stable code for programs.")
    hint: str = Field(description="What to do about it.")
    message_id: str | None = Field(
        None, alias="messageId", description="For a duplicate: the id of the first message."
    )
    status: str | None = Field(None, description="For a duplicate: the state of the first message.")


def install(app: Flask) -> None:
    """Answer every error in the same form."""
    app.register_error_handler(BullpenError, error_response)
    app.register_error_handler(HTTPException, _of_http)
    app.register_error_handler(Exception, _of_unexpected)


def error_response(error: BullpenError) -> Response:
    """Return this error as a response: a page for a browser that asked for a page, else JSON."""
    status = error.http_status
    preferred = request.accept_mimetypes.best_match(("application/json", "text/html"))
    if request.blueprint == PAGES and preferred == "text/html":
        from bullpen.api.portal.page import render_problem  # the pages import this module

        response = render_problem(error)
    else:
        response = Response(error_json(error), status, mimetype="application/json")
    if status in RETRY_SECONDS:
        response.headers["Retry-After"] = RETRY_SECONDS[status]
    if status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def error_json(error: BullpenError) -> str:
    """Return the body of an error's response."""
    answer = ErrorAnswer(error=str(error), code=error.code, hint=error.hint)
    if isinstance(error, DuplicateMessage):
        answer.message_id, answer.status = error.message_id, error.status
    # json, unlike pydantic, can write a lone surrogate from the request.
    return json.dumps(answer.model_dump(by_alias=True, exclude_none=True))


def validation_error_response(error: ValidationError) -> Response:
    """Return pydantic's errors, each with its field."""
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    problems = [
        f"{'.'.join(str(part) for part in each['loc']) or 'body'}: {each['msg']}"
        for each in errors[:MAX_LISTED_ERRORS]
    ]
    return error_response(BadRequest("; ".join(problems)))


def _of_http(error: HTTPException) -> Response:
    """Flask's own errors: unknown route, wrong method, malformed body."""
    text = error.description or error.name
    if isinstance(error, ClientDisconnected):
        text = "the body ended early, or is malformed"
    if error.code == 413:
        return error_response(BodyTooLarge("the request body is too large"))
    if error.code == 415:
        return error_response(NotJson("the body is not declared as JSON"))
    if error.code == 400:
        return error_response(BadRequest(text))
    if error.code == 404:
        text = f"route {request.path[:MAX_QUOTED_PATH]!a} does not exist"
        return error_response(NotFound(text, hint=ROUTES_HINT))
    if error.code == 405:
        text = f"{request.method} is not supported on {request.path[:MAX_QUOTED_PATH]!a}"
        response = error_response(BadRequest(text, hint=ROUTES_HINT))
    else:
        response = error_response(BadRequest(text))
    response.status_code = error.code or 500
    if error.code == 405:
        allowed = error.get_response().headers.get("Allow")
        if allowed:
            response.headers["Allow"] = allowed
    return response


def _of_unexpected(error: Exception) -> Response:
    log.error("a request failed", exc_info=error)
    return error_response(internal_error())


def internal_error() -> BullpenError:
    """The error of a failure in Bullpen itself, whose details are only in the log."""
    hint = f"The log of the API has the details with the request id {g.request_id}."
    return BullpenError("internal error", hint=hint)
