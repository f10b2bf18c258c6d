"""Login of a browser: a one-time link, exchanged for a cookie."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote, urlsplit

from flask import Response, redirect, request
from pydantic import BaseModel, Field

from bullpen.api.auth import SECURE_COOKIE, cookie_name, count_failure
from bullpen.api.context import api, caller, read, write
from bullpen.api.route import ADMIN, NO_SCOPE, Redirect, Routes
from bullpen.api.routes.keys import AgentSet
from bullpen.api.schemas import Answer, Done
from bullpen.core.access.keys import Key, KeyKind, Scope
from bullpen.core.access.login import (
    create_login_link,
    is_login_link,
    log_out,
    redeem_login_link,
)
from bullpen.core.clock import SECOND
from bullpen.core.errors import NoAccess
from bullpen.core.network import is_loopback

routes = Routes("login", "Login of browsers.")

HOME = "/reports"
"""Where a browser is redirected after login."""

NAME_LENGTH = 60


class Link(Done):
    """A login link for one browser."""

    url: str
    expires_at: int


class Code(BaseModel):
    """The code of a login link."""

    code: str = Field(max_length=200)


class Nonce(BaseModel):
    """The challenge of a proof."""

    nonce: str = Field(pattern=r"^[0-9a-f]{32}$", description="A new random number.")


class Proof(Answer):
    """The response that only the API of this home can compute."""

    proof: str


class Me(Answer):
    """The key of the request, and its rights."""

    id: str
    kind: KeyKind
    name: str
    scopes: list[Scope]
    agents: AgentSet = Field(description="The agents that the key reaches; null: all.")
    expires_at: int | None


@routes.post("/api/login-links", ADMIN)
def make() -> Link:
    """Create a one-time login link for a browser.

    The link is valid for a few minutes. The browser gets the rights of the key that created the
    link, and its login ends with that key.
    """
    with write() as tx:
        code, until = create_login_link(tx, caller())
    return Link(url=_login_url(code), expires_at=until)


@routes.get("/login", NO_SCOPE)
def come_in(query: Code) -> Redirect:
    """Exchange the code of a login link for a cookie."""
    if request.method == "HEAD":
        return _redirect(HOME)  # a preview of the link must not use it up
    cookie = cookie_name()
    if cookie is None:
        # Only with a valid code, because the name is secret.
        with read() as tx:
            valid = is_login_link(tx, query.code)
        return _redirect(_login_url(query.code)) if valid else _refuse()
    browser = (request.user_agent.string or "a browser")[:NAME_LENGTH]
    with api().store.write() as tx:
        redeemed = redeem_login_link(tx, query.code, browser)
        now = tx.now
    return _refuse() if redeemed is None else _let_in(cookie, *redeemed, now)


@routes.post("/api/logout", NO_SCOPE, audited=True)
def leave() -> Annotated[Response, Done]:
    """End the browser's login; keys that it created stay valid."""
    if caller().kind is KeyKind.BROWSER:
        with write() as tx:
            log_out(tx, caller())
    response = Response(Done().model_dump_json(), mimetype="application/json")
    if (cookie := cookie_name()) is not None:
        response.delete_cookie(cookie, secure=cookie == SECURE_COOKIE)
    return response


@routes.get("/api/me", NO_SCOPE)
def me() -> Me:
    """Get the key of this request and its rights."""
    key = caller()
    return Me.from_row(key, scopes=[scope for scope in Scope if key.has_scope(scope)])


@routes.get("/", NO_SCOPE)
def front() -> Redirect:
    """Redirect a browser to the first page."""
    return _redirect(HOME)


@routes.get("/api/proof", NO_SCOPE)
def proof(query: Nonce) -> Proof:
    """Prove that this is the API of a home.

    `bullpen open` asks for the proof before it opens a browser.
    """
    return Proof(proof=api().owner.prove(query.nonce))


def _login_url(code: str) -> str:
    """Return the link with the host name that browsers use."""
    base = urlsplit(request.host_url)
    url = api().settings.public_url or f"{base.scheme}://{base.netloc}"
    if not api().settings.public_url and is_loopback(base.hostname or ""):
        port = f":{base.port}" if base.port else ""
        url = f"{base.scheme}://{api().owner.browser_name()}{port}"
    return f"{url}/login?code={quote(code)}"


def _refuse() -> Response:
    count_failure()
    raise NoAccess(
        "invalid, expired or used login link", hint="Create a new link with `bullpen open`."
    )


def _let_in(cookie: str, key: Key, secret: str, now: int) -> Response:
    response = _redirect(HOME)
    assert key.expires_at is not None
    response.set_cookie(
        cookie,
        secret,
        max_age=(key.expires_at - now) // SECOND,
        httponly=True,
        secure=cookie == SECURE_COOKIE or request.is_secure,
        samesite="Lax",
    )
    return response


def _redirect(path: str) -> Response:
    response = redirect(path)
    assert isinstance(response, Response)
    return response
