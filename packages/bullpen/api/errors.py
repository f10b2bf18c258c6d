"""Errors as the API tells them: one shape, with a status for each branch of the tree."""

from __future__ import annotations

import json
import logging

from flask import Flask, Response, g
from pydantic import BaseModel, Field, ValidationError
from werkzeug.exceptions import HTTPException

from bullpen.core.errors import (
    AccessError,
    BadRequest,
    BodyTooLarge,
    BullpenError,
    Conflict,
    DuplicateMessage,
    InputError,
    LaneError,
    LaneFull,
    NoAccess,
    NoSupervisor,
    NotFound,
    NotJson,
    Overloaded,
    StoreError,
    TooManyFailures,
)

log = logging.getLogger(__name__)

STATUSES: tuple[tuple[type[BullpenError], int], ...] = (
    (NoAccess, 401),
    (TooManyFailures, 429),
    (AccessError, 403),
    (NotJson, 415),
    (BodyTooLarge, 413),
    (InputError, 400),
    (NotFound, 404),
    (Conflict, 409),
    (LaneFull, 429),
    (LaneError, 409),
    (NoSupervisor, 409),
    (Overloaded, 503),
    (StoreError, 503),
)
"""The first that an error is of."""

RETRY_SECONDS = {429: "60", 503: "1"}

MAX_LISTED_ERRORS = 5
"""So many mistakes of one request are named."""


class ErrorDetail(BaseModel):
    """What happened, and what can be done."""

    code: str
    message: str
    hint: str


class ErrorAnswer(BaseModel):
    """Every answer that is not a success."""

    error: ErrorDetail
    message_id: str | None = Field(None, alias="messageId")
    """Of a duplicate: the id that was taken."""
    status: str | None = None
    """Of a duplicate: the state of the first one."""


def status_of(kind: type[BullpenError]) -> int:
    """The HTTP status of an error."""
    return next((status for each, status in STATUSES if issubclass(kind, each)), 500)


def install(app: Flask) -> None:
    """Answer every error in the one shape."""
    app.register_error_handler(BullpenError, error_response)
    app.register_error_handler(HTTPException, _of_http)
    app.register_error_handler(Exception, _unforeseen)


def error_response(error: BullpenError) -> Response:
    """This error, as an answer."""
    status = status_of(type(error))
    response = Response(error_json(error), status, mimetype="application/json")
    if status in RETRY_SECONDS:
        response.headers["Retry-After"] = RETRY_SECONDS[status]
    if status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def error_json(error: BullpenError) -> str:
    """What is told of an error, as JSON."""
    told = ErrorAnswer(
        error=ErrorDetail(code=error.code, message=str(error), hint=error.hint),
    )
    if isinstance(error, DuplicateMessage):
        told.message_id, told.status = error.message_id, error.status
    # A lone surrogate that somebody sent must not break the answer that says so.
    return json.dumps(told.model_dump(by_alias=True, exclude_none=True))


def validation_error_response(error: ValidationError) -> Response:
    """What pydantic found, each place with what is wrong there."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    places = [
        f"{'.'.join(str(part) for part in each['loc']) or 'body'}: {each['msg']}"
        for each in found[:MAX_LISTED_ERRORS]
    ]
    return error_response(BadRequest("; ".join(places)))


def _of_http(error: HTTPException) -> Response:
    """Flask's own: no such route, a method that it does not have, a body that is none."""
    text = error.description or error.name
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


def _unforeseen(error: Exception) -> Response:
    log.error("a request failed", exc_info=error)
    failed = BullpenError("something in Bullpen failed", hint=f"The log has it as {g.request_id}.")
    return error_response(failed)
