"""Pages: Jinja's templates rendered with a strict policy, and errors that a person can read."""

from __future__ import annotations

from functools import cache

from flask import Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from bullpen.api.portal.assets import asset_address
from bullpen.core.errors import BullpenError, NoAccess

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
"""Pages load only our own files, and nothing in their text runs."""


def render_page(template: str, status: int = 200, **values: object) -> Response:
    """Render a template as the answer to a request."""
    text = _environment().get_template(template).render(values)
    response = Response(text, status, mimetype="text/html")
    response.headers["Content-Security-Policy"] = POLICY
    return response


def render_problem(error: BullpenError) -> Response:
    """Render an error as a page."""
    text = str(error)
    title, hint = text[:1].upper() + text[1:], error.hint
    if isinstance(error, NoAccess):
        title, hint = "Log in first", "Run `bullpen open` in a terminal on the machine of Bullpen."
    return render_page(
        "problem.html", error.http_status, title=title, text=text, hint=hint, section=""
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("bullpen.api.portal"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.globals["asset"] = asset_address
    environment.filters["safe_json"] = _safe_json
    return environment


def _safe_json(text: str) -> Markup:
    """JSON for a script element, which it cannot end."""
    return Markup(text.replace("<", "\\u003c"))  # noqa: S704 - that is the only way out of it
