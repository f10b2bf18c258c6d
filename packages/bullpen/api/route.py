"""Turns views into routes: scope, answer, errors, and the entry in the OpenAPI document."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, TypeVar, get_args, get_origin, get_type_hints

from flask import Response, g
from flask_openapi3.blueprint import APIBlueprint
from flask_openapi3.models import OPENAPI3_REF_PREFIX
from flask_openapi3.models.tag import Tag
from pydantic import BaseModel

from bullpen.api.auth import PUBLIC_ENDPOINTS, refuse
from bullpen.api.context import require_scope
from bullpen.api.errors import ErrorAnswer
from bullpen.api.schemas import Rows
from bullpen.core.access.keys import Scope
from bullpen.core.errors import AccessError, BullpenError

READ = Scope.READ
PUBLISH = Scope.PUBLISH
CLAIM = Scope.CLAIM
APPROVE = Scope.APPROVE
ADMIN = Scope.ADMIN
NO_SCOPE = None
"""Open to every key, and to requests without a key if the endpoint is in `PUBLIC_ENDPOINTS`."""

AUDITED_SCOPES = frozenset({APPROVE, ADMIN})
"""Requests that need these scopes are in the audit log, except GET."""

ALWAYS = (400, 401, 403, 413, 415, 429, 503)
"""The error statuses that every request can get."""

ERROR = f"{OPENAPI3_REF_PREFIX}/{ErrorAnswer.__name__}"

MAX_READERS = 4
"""The number of large answers that a process creates at once; sending them has no such limit."""

_READERS = threading.BoundedSemaphore(MAX_READERS)

View = TypeVar("View", bound=Callable[..., BaseModel | Response])
Error = type[BullpenError]
DescribeRoute = Callable[[APIBlueprint], object]


class Decorator(Protocol):
    """Registers a view and returns it unchanged."""

    def __call__(self, view: View, /) -> View: ...


@dataclass(frozen=True, slots=True)
class Described:
    """The description of an answer that is not the JSON of a model."""

    description: str
    content_type: str = ""
    schema: Mapping[str, object] | None = None
    status: int = 200

    def document(self) -> dict[str, Any]:
        """The entry in the OpenAPI document."""
        if self.schema is None:
            return {"description": self.description}
        content = {self.content_type: {"schema": dict(self.schema)}}
        return {"description": self.description, "content": content}


Redirect = Annotated[Response, Described("Redirect.", status=302)]


class Routes:
    """The routes of one noun.

    The return annotation of a view declares its answer: a model, or in `Annotated[Response, …]` a
    model or a `Described`. After the path follow the scope that a key needs, and the errors that
    the view may raise in addition to those of every request.
    """

    def __init__(self, name: str, doc: str) -> None:
        self.blueprint = APIBlueprint(name, __name__, doc_ui=False)
        self._tag = Tag(name=name, description=doc)
        self._describe: list[DescribeRoute] = []

    def describe(self) -> APIBlueprint:
        """A blueprint of the same routes with their descriptions, for the OpenAPI document."""
        blueprint = APIBlueprint(self.blueprint.name, __name__, abp_tags=[self._tag])
        for each in self._describe:
            each(blueprint)
        return blueprint

    def get(self, path: str, scope: Scope | None, *errors: Error) -> Decorator:
        """Serve GET, which is never in the audit log."""
        return self._serve("get", path, scope, errors, audited=False)

    def post(
        self,
        path: str,
        scope: Scope | None,
        *errors: Error,
        audited: bool | None = None,
        request_body: Mapping[str, object] | None = None,
    ) -> Decorator:
        """Serve POST; `audited` overrides the default of the scope.

        `request_body` describes a body that is not a model in the view's arguments.
        """
        return self._serve("post", path, scope, errors, audited=audited, request_body=request_body)

    def put(self, path: str, scope: Scope | None, *errors: Error) -> Decorator:
        """Serve PUT."""
        return self._serve("put", path, scope, errors)

    def patch(self, path: str, scope: Scope | None, *errors: Error) -> Decorator:
        """Serve PATCH."""
        return self._serve("patch", path, scope, errors)

    def delete(self, path: str, scope: Scope | None, *errors: Error) -> Decorator:
        """Serve DELETE."""
        return self._serve("delete", path, scope, errors)

    def _serve(
        self,
        method: str,
        path: str,
        scope: Scope | None,
        errors: tuple[Error, ...],
        *,
        audited: bool | None = None,
        request_body: Mapping[str, object] | None = None,
    ) -> Decorator:
        if audited is None:
            audited = scope in AUDITED_SCOPES

        def decorate(view: View) -> View:
            guarded = _guard(view, scope, audited=audited)
            if method == "get":
                guarded = _in_turn(guarded)
            getattr(self.blueprint, method)(path)(guarded)
            self._describe.append(describe(view, guarded))
            return view

        def describe(view: View, guarded: Callable[..., Response]) -> DescribeRoute:
            summary, _, description = (view.__doc__ or "").partition("\n\n")
            needs = "" if scope is None else f"Needs the scope `{scope.value}`."
            public = f"{self.blueprint.name}.{view.__name__}" in PUBLIC_ENDPOINTS
            return lambda blueprint: getattr(blueprint, method)(
                path,
                summary=" ".join(summary.split()),
                description="\n\n".join(part for part in (_plain(description), needs) if part),
                responses=_responses(view, errors),
                security=[] if public else [{"token": []}, {"cookie": []}],
                openapi_extensions=None if request_body is None else {"requestBody": request_body},
            )(guarded)

        return decorate


def _guard(
    view: Callable[..., BaseModel | Response], scope: Scope | None, *, audited: bool
) -> Callable[..., Response]:
    """Check the scope before the view; also record refusals of audited routes."""

    @functools.wraps(view)
    def guarded(**values: Any) -> Response:  # noqa: ANN401 - what the view asks for
        g.audited = audited
        try:
            if scope is not None:
                require_scope(scope)
            answer = view(**values)
        except AccessError as error:
            if audited:
                refuse(error)
            raise
        return answer if isinstance(answer, Response) else as_json(answer)

    return guarded


def _in_turn(view: Callable[..., Response]) -> Callable[..., Response]:
    """Limit how many views with large answers run at once, because of their memory."""
    large = functools.cache(lambda: bool(getattr(_answer_of(view), "large", False)))

    @functools.wraps(view)
    def in_turn(**values: Any) -> Response:  # noqa: ANN401 - what the view asks for
        with _READERS if large() else nullcontext():
            return view(**values)

    return in_turn


def as_json(answer: BaseModel) -> Response:
    """Return a model as a response; a list with more pages has its cursor in a header."""
    cursor = answer.next_cursor if isinstance(answer, Rows) else None
    return json_response(answer.model_dump_json(by_alias=True), cursor)


def json_response(text: str | bytes, cursor: int | None = None) -> Response:
    """Return this JSON as a response."""
    response = Response(text, mimetype="application/json")
    if cursor is not None:
        response.headers["X-Next-Cursor"] = str(cursor)
    return response


def _responses(
    view: Callable[..., BaseModel | Response], errors: tuple[Error, ...]
) -> dict[str | int, Any]:
    """Return the statuses of a view with their answers."""
    statuses = sorted({*ALWAYS, *(error.http_status for error in errors)})
    responses: dict[str | int, Any] = {status: _error() for status in statuses}
    responses[statuses[0]] = ErrorAnswer
    answer = _answer_of(view)
    if isinstance(answer, Described):
        responses[answer.status] = answer.document()
    else:
        assert issubclass(answer, BaseModel), f"{view.__name__} does not say what it answers"
        responses[200] = answer
    return responses


def _answer_of(view: Callable[..., object]) -> Any:  # noqa: ANN401 - a model, or `Described`
    """Return the declared answer of a view."""
    answer = get_type_hints(view, include_extras=True)["return"]
    return get_args(answer)[1] if get_origin(answer) is Annotated else answer


def _error() -> dict[str, object]:
    """Refer to `ErrorAnswer` by its name, because describing the model each time is slow."""
    return {"content": {"application/json": {"schema": {"$ref": ERROR}}}}


def _plain(text: str) -> str:
    return "\n".join(line.strip() for line in text.strip().splitlines())
