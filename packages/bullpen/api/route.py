"""How a view becomes a route: scope, answer, errors and its entry in the OpenAPI description."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

from flask import Response, g
from flask_openapi3.blueprint import APIBlueprint
from flask_openapi3.models import OPENAPI3_REF_PREFIX
from flask_openapi3.models.tag import Tag
from pydantic import BaseModel, ConfigDict, Field, JsonValue, RootModel
from sqlalchemy import Table

from bullpen.api.auth import PUBLIC_ENDPOINTS, refuse
from bullpen.api.context import api, require_scope
from bullpen.api.errors import ErrorAnswer, status_of
from bullpen.core.access.keys import Scope
from bullpen.core.errors import BullpenError, OutOfReach, ScopeTooSmall
from bullpen.core.store.paging import MAX_ROW_ID, committed_up_to

MAX_PAGE_ROWS = 500
"""So many rows are in one answer at the most."""

MAX_JSON_INT = (1 << 53) - 1
"""The largest number that every reader of JSON keeps as it is."""

Number = Annotated[int, Field(ge=0, le=MAX_JSON_INT)]
Cursor = Annotated[int, Field(ge=0, le=MAX_JSON_INT)]


class StrictBody(BaseModel):
    """What comes in: what is not known is not taken for something else, and nothing is guessed."""

    model_config = ConfigDict(extra="forbid")


class Done(BaseModel):
    """It was done."""

    ok: Literal[True] = True


class Count(Done):
    """It was done to so many."""

    count: int


class Page(BaseModel):
    """Which part of a list: the newest, or what comes after a number."""

    limit: int = Field(100, ge=1, le=MAX_PAGE_ROWS, description="how many at the most")
    since_id: Cursor | None = Field(
        None, description="only what has a higher number, the oldest first"
    )


def page_end(rows: Table, since: int | None) -> int:
    """How far a list may go on: a number that is to come is not passed by."""
    return MAX_ROW_ID if since is None else committed_up_to(api().store, rows)


def list_response(rows: RootModel[Any], numbers: list[int], page: Page) -> Response:
    """A list as the reference's clients read it, with its cursor in a header."""
    response = Response(rows.model_dump_json(by_alias=True), mimetype="application/json")
    if numbers and (page.since_id is not None or len(numbers) == page.limit):
        response.headers["X-Next-Cursor"] = str(max(numbers))
    return response


def parse_files(text: str | None) -> list[str]:
    """The files of a row."""
    return [] if not text else [str(each) for each in json.loads(text)]


def parse_json(text: str | None) -> JsonValue:
    """A column of JSON, as JSON again; what is none is shown as its text."""
    if text is None:
        return None
    try:
        found: JsonValue = json.loads(text)
    except ValueError:
        return text
    return found


# What comes in of an agent, a team or a provider.
#
# What is not sent stays as it is; fields that are not known are passed over, for the reference's
# clients send more than is read here.

ShortText = Annotated[str, Field(max_length=200)]
LongText = Annotated[str, Field(max_length=4096)]


class LenientBody(BaseModel):
    """What is to be changed."""

    model_config = ConfigDict(extra="ignore")


View = TypeVar("View", bound=Callable[..., BaseModel | Response])

ALWAYS = (400, 401, 403, 413, 415, 429, 503)
"""What any request may be answered with."""

ERROR = f"{OPENAPI3_REF_PREFIX}/{ErrorAnswer.__name__}"


def blueprint(name: str, doc: str) -> APIBlueprint:
    """The routes of one noun."""
    return APIBlueprint(name, name, abp_tags=[Tag(name=name, description=doc)])


def route(
    routes: APIBlueprint,
    method: str,
    rule: str,
    *,
    scope: Scope | None,
    answer: type[BaseModel] | Mapping[str, Any] | None,
    errors: Sequence[type[BullpenError]] = (),
    audited: bool = False,
) -> Callable[[View], View]:
    """Serve this view: `scope` is what a key needs; None is for every key, or for all (`PUBLIC_ENDPOINTS`).

    An `answer` that is no model is what the description says of it; None leads elsewhere.
    `audited`: what it does, and to whom it is refused, is in the audit log.
    """
    statuses = sorted({*ALWAYS, *(status_of(error) for error in errors)})
    responses: dict[str | int, Any] = {status: _error() for status in statuses}
    responses[statuses[0]] = ErrorAnswer
    if answer is None:
        responses[302] = {"description": "Look there."}
    else:
        responses[200] = answer

    def decorate(view: View) -> View:
        @functools.wraps(view)
        def guarded(**values: Any) -> Response:  # noqa: ANN401 - what the view asks for
            g.audited = audited
            try:
                if scope is not None:
                    require_scope(scope)
                found = view(**values)
            except (ScopeTooSmall, OutOfReach) as error:
                if audited:
                    refuse(error)
                raise
            return found if isinstance(found, Response) else as_json(found)

        summary, _, description = (view.__doc__ or "").partition("\n\n")
        open_to_all = f"{routes.name}.{view.__name__}" in PUBLIC_ENDPOINTS
        needs = "" if scope is None else f"Needs the scope `{scope.value}`."
        register = getattr(routes, method.lower())
        register(
            rule,
            summary=" ".join(summary.split()),
            description="\n\n".join(part for part in (_plain(description), needs) if part),
            responses=responses,
            security=[] if open_to_all else [{"token": []}, {"cookie": []}],
        )(guarded)
        return view

    return decorate


def as_json(found: BaseModel, status: int = 200) -> Response:
    """A model as an answer."""
    return Response(found.model_dump_json(by_alias=True), status, mimetype="application/json")


def _error() -> dict[str, object]:
    """The same as `ErrorAnswer`, by its name: to describe the model each time takes long."""
    return {"content": {"application/json": {"schema": {"$ref": ERROR}}}}


def _plain(text: str) -> str:
    return "\n".join(line.strip() for line in text.strip().splitlines())
