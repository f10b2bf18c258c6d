"""Errors as the API answers them, all in one shape."""

from __future__ import annotations

import json
import logging

from flask import Flask, Response, g
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
"""How many validation errors of one request are listed."""


class ErrorAnswer(BaseModel):
    """Every answer that is not a success."""

    error: str
    """What happened, in words; clients of TinyAGI show it."""
    code: str
    hint: str
    """What can be done."""
    message_id: str | None = Field(None, alias="messageId")
    """Of a duplicate: the id that was taken."""
    status: str | None = None
    """Of a duplicate: the state of the first one."""


def install(app: Flask) -> None:
    """Answer every error in the one shape."""
    app.register_error_handler(BullpenError, error_response)
    app.register_error_handler(HTTPException, _of_http)
    app.register_error_handler(Exception, _of_unexpected)


def error_response(error: BullpenError) -> Response:
    """This error, as an answer."""
    status = error.http_status
    response = Response(error_json(error), status, mimetype="application/json")
    if status in RETRY_SECONDS:
        response.headers["Retry-After"] = RETRY_SECONDS[status]
    if status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def error_json(error: BullpenError) -> str:
    """The body of an error's answer."""
    answer = ErrorAnswer(error=str(error), code=error.code, hint=error.hint)
    if isinstance(error, DuplicateMessage):
        answer.message_id, answer.status = error.message_id, error.status
    # json, unlike pydantic, can write a lone surrogate that came with the request.
    return json.dumps(answer.model_dump(by_alias=True, exclude_none=True))


def validation_error_response(error: ValidationError) -> Response:
    """The errors that pydantic found, each with its field."""
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
        text = "the body ended early, or is not framed as HTTP says"
    if error.code == 413:
        return error_response(BodyTooLarge("the request is longer than may be"))
    if error.code == 415:
        return error_response(NotJson("the body is not declared as JSON"))
    if error.code == 400:
        return error_response(BadRequest(text))
    response = error_response(NotFound(text) if error.code == 404 else BadRequest(text))
    response.status_code = error.code or 500
    if error.code == 405:
        allowed = error.get_response().headers.get("Allow")
        if allowed:
            response.headers["Allow"] = allowed
    return response


def _of_unexpected(error: Exception) -> Response:
    log.error("a request failed", exc_info=error)
    failed = BullpenError("something in Bullpen failed", hint=f"The log has it as {g.request_id}.")
    return error_response(failed)
