"""The way in for a browser: a one-time link, and the cookie that it is exchanged for."""

from __future__ import annotations

from typing import Annotated

from flask import Response, redirect, request
from pydantic import BaseModel, Field

from bullpen.api.auth import COOKIE, count_failure
from bullpen.api.context import api, caller, write
from bullpen.api.route import ADMIN, NO_SCOPE, Redirect, Routes
from bullpen.api.routes.keys import AgentSet
from bullpen.api.schemas import Answer, Done
from bullpen.core.access.keys import (
    BROWSER_DAYS,
    LINK_MINUTES,
    KeyKind,
    Scope,
    create_login_link,
    redeem_login_link,
    revoke_key,
)
from bullpen.core.clock import DAY, MINUTE, SECOND
from bullpen.core.errors import NoAccess

routes = Routes("login", "The way in for a browser.")

HOME = "/openapi/swagger"
"""Where a browser is redirected after login."""

NAME_LENGTH = 60


class Link(Done):
    """A link for one browser."""

    url: str
    expires_at: int


class Code(BaseModel):
    """What the link carries."""

    code: str = Field(max_length=200)


class Me(Answer):
    """Who asks, and what that one may do."""

    id: str
    kind: KeyKind
    name: str
    scopes: list[Scope]
    agents: AgentSet = Field(description="the agents that it reaches; null is all")
    expires_at: int | None


@routes.post("/api/login-links", ADMIN)
def make() -> Link:
    """Make a link that lets one browser in, once, within a few minutes.

    What the browser may do is what the key may that makes the link.
    """
    with write() as tx:
        code = create_login_link(tx, caller().scopes, caller().agents)
        until = tx.now + LINK_MINUTES * MINUTE
    return Link(url=f"{request.host_url}login?code={code}", expires_at=until)


@routes.get("/login", NO_SCOPE)
def come_in(query: Code) -> Redirect:
    """Exchange a link's code for a cookie."""
    browser = (request.user_agent.string or "a browser")[:NAME_LENGTH]
    with api().store.write() as tx:
        redeemed = redeem_login_link(tx, query.code, browser)
    if redeemed is None:
        count_failure()
        raise NoAccess(
            "this link was used before, or its time is over",
            hint="Make another one with `bullpen open`.",
        )
    response = _redirect(HOME)
    response.set_cookie(
        COOKIE,
        redeemed[1],
        max_age=BROWSER_DAYS * DAY // SECOND,
        httponly=True,
        secure=request.is_secure,
        samesite="Lax",
    )
    return response


@routes.post("/api/logout", NO_SCOPE, audited=True)
def leave() -> Annotated[Response, Done]:
    """Forget this browser: its cookie opens nothing any more."""
    if caller().kind is KeyKind.BROWSER:
        with write() as tx:
            revoke_key(tx, caller().id)
    response = Response(Done().model_dump_json(), mimetype="application/json")
    response.delete_cookie(COOKIE)
    return response


@routes.get("/api/me", NO_SCOPE)
def me() -> Me:
    """Say who asks, and what that one may do."""
    key = caller()
    return Me.from_row(key, scopes=[scope for scope in Scope if key.has_scope(scope)])


@routes.get("/", NO_SCOPE)
def front() -> Redirect:
    """Lead a browser to the page on which the API can be tried."""
    return _redirect(HOME)


def _redirect(path: str) -> Response:
    response = redirect(path)
    assert isinstance(response, Response)
    return response
