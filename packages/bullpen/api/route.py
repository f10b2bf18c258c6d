"""How a view becomes a route: its scope, answer and errors, and its place in the description."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from flask import Response, g
from flask_openapi3.blueprint import APIBlueprint
from flask_openapi3.models import OPENAPI3_REF_PREFIX
from flask_openapi3.models.tag import Tag
from pydantic import BaseModel

from bullpen.api.context import need
from bullpen.api.errors import ErrorAnswer, status_of
from bullpen.api.guard import OPEN, refuse
from bullpen.core.access.key import Scope
from bullpen.core.errors import BullpenError, OutOfReach, ScopeTooSmall

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
    """Serve this view: `scope` is what a key needs; None is for every key, or for all (`OPEN`).

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
                    need(scope)
                found = view(**values)
            except (ScopeTooSmall, OutOfReach) as error:
                if audited:
                    refuse(error)
                raise
            return found if isinstance(found, Response) else as_json(found)

        summary, _, description = (view.__doc__ or "").partition("\n\n")
        open_to_all = f"{routes.name}.{view.__name__}" in OPEN
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
