"""Authentication of a request: token, cookie, Host and Origin, and a limit on failed attempts."""

from __future__ import annotations

import logging
import re
import secrets
from functools import cache
from urllib.parse import urlsplit

from flask import Flask, Request, Response, g, request

from bullpen.api.context import api, audit_fields, caller
from bullpen.core.access.audit import record_audit
from bullpen.core.access.keys import USED_AT_INTERVAL, Key, find_key, record_use
from bullpen.core.errors import (
    AccessError,
    BodyTooLarge,
    ForeignHost,
    ForeignPage,
    NoAccess,
    NotJson,
    TooManyFailures,
    UnsafeSecret,
)
from bullpen.core.network import is_loopback
from bullpen.core.settings import Settings

log = logging.getLogger(__name__)

COOKIE = "bullpen"
SECURE_COOKIE = "__Host-bullpen"
"""Browsers send a cookie with this prefix only over TLS, and only to the host that set it."""

LOOPBACK = ("127.0.0.1", "localhost", "::1")
PUBLIC_ENDPOINTS = frozenset(
    {
        *("health.alive", "health.ready", "login.come_in", "login.front", "login.proof"),
        "assets.asset",
    }
)
"""Endpoints without authentication: health checks, login, and the files of the pages."""

DOCS_BLUEPRINTS = frozenset({"openapi", "swagger"})
"""The OpenAPI document and its page; neither has data of this home."""

POLICY = "default-src 'none'; frame-ancestors 'none'"
"""For responses that are not pages."""

PAGE_POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
"""For the pages: they load and call only this API."""

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_MAX_SECRET_CHARS = 512


def install(app: Flask) -> None:
    """Check every request before its route."""
    app.before_request(check_request)
    app.after_request(_add_headers)


def check_request() -> Response | None:
    """Raise an error if the request is not allowed; answer a preflight request.

    The Host is checked first, because with an unknown name a page may have rebound its own name to
    this machine; then the Origin, then the token. A body must be declared as JSON or as a form of
    files, because pages cannot send these to another site without a preflight request.
    """
    request_id = request.headers.get("X-Request-Id", "")
    g.request_id = request_id if _REQUEST_ID.fullmatch(request_id) else secrets.token_hex(8)
    _check_host(request)
    _check_page(request)
    if request.method == "OPTIONS" and "Origin" in request.headers:
        return Response(status=204)
    if request.endpoint not in PUBLIC_ENDPOINTS and request.blueprint not in DOCS_BLUEPRINTS:
        g.caller = _authenticate(request)
    _check_body(request)
    return None


def _check_host(incoming: Request) -> None:
    name, settings = _name(incoming.host), api().settings
    if (
        name not in LOOPBACK
        and name not in _split(f"{settings.api_host},{settings.api_names}")
        and name not in (_public_name(settings), _browser_name())
    ):
        raise ForeignHost(f"{incoming.host[:100]!r} is not a name of this API")


@cache
def _split(names: str) -> frozenset[str]:
    """Return the names in a comma-separated setting, in lower case."""
    return frozenset(each.strip().lower() for each in names.split(",")) - {""}


def _name(host: str) -> str:
    return (urlsplit(f"//{host}").hostname or "").lower()


def _public_name(settings: Settings) -> str | None:
    return urlsplit(settings.public_url).hostname


def _browser_name() -> str | None:
    try:
        return api().owner.browser_name()
    except (OSError, UnsafeSecret):
        return None


def cookie_name() -> str | None:
    """Return the name of the login cookie for the request's host name; None if it allows no login.

    Loopback addresses allow none, because servers on every other port would get the cookie.
    """
    name, settings = _name(request.host), api().settings
    if name == _public_name(settings):
        return SECURE_COOKIE if settings.public_url.startswith("https:") else COOKIE
    return None if is_loopback(name) else COOKIE


def _check_page(incoming: Request) -> None:
    """Check the page that a browser reports for the request, which a page cannot forge."""
    origin = incoming.headers.get("Origin")
    if origin is not None:
        settings = api().settings
        own = (f"{incoming.scheme}://{incoming.host}", settings.public_url)
        if origin not in own and origin not in _split(settings.api_origins):
            raise ForeignPage(f"a page of {origin[:100]!r} may not use this API")
    elif incoming.headers.get("Sec-Fetch-Site") in ("cross-site", "same-site"):
        navigates = (
            incoming.headers.get("Sec-Fetch-Mode") == "navigate" and incoming.method == "GET"
        )
        if not navigates:
            raise ForeignPage("a page of another site may not use this API")


def _check_body(incoming: Request) -> None:
    if not incoming.content_length and "Transfer-Encoding" not in incoming.headers:
        return
    if incoming.endpoint == "files.upload":
        incoming.max_content_length = api().settings.upload_bytes
        if incoming.mimetype != "multipart/form-data":
            raise NotJson(
                "the body is not declared as multipart/form-data",
                hint="Upload a file with `Content-Type: multipart/form-data`.",
            )
    elif incoming.method in ("POST", "PUT", "PATCH", "DELETE"):
        if not incoming.is_json:
            raise NotJson("the body is not declared as JSON")
        # A chunked body is cut at the limit, and would look like invalid JSON.
        if len(incoming.get_data()) >= api().settings.body_bytes:
            raise BodyTooLarge("the request body is too large")
        incoming.get_json()


def _authenticate(incoming: Request) -> Key:
    """Return the key of this request. Failures of others never lead to a refusal."""
    secret = _secret(incoming)
    now = api().store.clock.now()
    if secret is None:
        raise NoAccess("no token was sent")
    key = _find_owner(secret) or _find_key(secret, now)
    if key is None:
        count_failure()
        raise NoAccess("invalid or revoked token")
    return key


def count_failure() -> None:
    """Count a wrong secret; after many from one address in a minute, answer 429 instead of 401.

    Valid secrets are always accepted, so that others' failures lock no client out.
    """
    address, now = request.remote_addr or "", api().store.clock.now()
    if api().failures.too_many(address, now):
        raise TooManyFailures("too many wrong tokens from this address")
    if api().failures.add(address, now):
        log.warning("too many wrong tokens from %s", address)


def _secret(incoming: Request) -> str | None:
    header = incoming.headers.get("Authorization", "")
    kind, _, secret = header.partition(" ")
    if header:
        secret = secret.strip() if kind.lower() == "bearer" else ""
    else:
        name = cookie_name()
        secret = "" if name is None else incoming.cookies.get(name, "")
    return secret if 0 < len(secret) <= _MAX_SECRET_CHARS else None


def _find_owner(secret: str) -> Key | None:
    try:
        return api().owner.find(secret)
    except (OSError, UnsafeSecret) as error:
        log.error("cannot use the owner's token: %s", error)
        return None


def _find_key(secret: str, now: int) -> Key | None:
    store = api().store
    with store.read() as tx:
        key = find_key(tx, secret)
    if key is not None and (key.used_at is None or now - key.used_at >= USED_AT_INTERVAL):
        with store.write(durable=False) as tx:
            record_use(tx, key)
    return key


def refuse(error: AccessError) -> None:
    """Record the refusal of a known caller in the audit log."""
    with api().store.write(durable=False) as tx:
        record_audit(tx, caller(), outcome=error.code, **audit_fields())


def _add_headers(response: Response) -> Response:
    headers = response.headers
    headers["X-Request-Id"] = str(g.get("request_id", ""))
    headers["X-Content-Type-Options"] = "nosniff"
    policy = PAGE_POLICY if request.blueprint in DOCS_BLUEPRINTS else POLICY
    headers.setdefault("Content-Security-Policy", policy)
    headers["Referrer-Policy"] = "no-referrer"
    headers.setdefault("Cache-Control", "no-store")
    origin = request.headers.get("Origin")
    if origin is not None and origin in _split(api().settings.api_origins):
        headers["Access-Control-Allow-Origin"] = str(origin)
        headers["Vary"] = "Origin"
        headers["Access-Control-Allow-Headers"] = (
            "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, X-Request-Id"
        )
        headers["Access-Control-Allow-Methods"] = "GET, POST, PUT, PATCH, DELETE"
        headers["Access-Control-Expose-Headers"] = "X-Next-Cursor, X-Request-Id, Retry-After"
        headers["Access-Control-Max-Age"] = "600"
    return response
