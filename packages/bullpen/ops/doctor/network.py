"""Checks of the API's address, port, host names, origins and token."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from bullpen.core.access.keys import KeyKind, list_keys
from bullpen.core.access.owner import MIN_TOKEN_CHARS
from bullpen.core.errors import AddressTaken
from bullpen.core.network import check_api_address, listening_pids
from bullpen.ops.doctor.check import PASSED, Needs, Problem, Severity, Verdict, check, skipped
from bullpen.ops.doctor.installation import Installation
from bullpen.ops.services.supervisor import RUNNING

LOOPBACK_ONLY = "the API listens on this machine only"
FIRST_USER_PORT = 1024


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach this address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@check("net.port_taken", Severity.CRITICAL)
def port_taken(installation: Installation) -> Problem | Verdict:
    """Another program listens on the API's port."""
    try:
        check_api_address(installation.settings)
    except AddressTaken as error:
        taken = error
    else:
        return PASSED
    port = installation.settings.api_port
    pids = listening_pids(port) or set()
    ours = {each.pid for each in installation.processes if each.ours and each.service == "api"}
    if pids & ours:
        return PASSED
    serving = any(
        each["name"] == "api" and each["state"] == RUNNING for each in installation.services or ()
    )
    if not pids and serving:
        return PASSED
    names = [str(each) for each in installation.processes if each.pid in pids]
    other = any(each.pid in pids and each.service == "api" for each in installation.processes)
    return Problem(
        text=str(taken)
        + (f": {', '.join(names[:2])}" if names else "")
        + (", the API of another home" if other else ""),
        remedy=f"Stop that program, or choose another port: bullpen config set api_port"
        f" {_next(port)}; bullpen up"
        if names or pids or port >= FIRST_USER_PORT
        else taken.hint,
    )


def _next(port: int) -> int:
    return port + 1 if port < 65535 else 3778


@check("net.bind_public_no_auth", Severity.CRITICAL, Needs.SCHEMA)
def bind_public_no_auth(installation: Installation) -> Problem | Verdict:
    """The API is set to listen beyond this machine, and there is no API key."""
    host = installation.settings.api_host
    if is_loopback(host):
        return PASSED
    with installation.store.read() as tx:
        keys = [each for each in list_keys(tx) if each.kind is KeyKind.KEY and each.valid(tx.now)]
    if keys:
        return PASSED
    return Problem(
        text=f"api_host is {host}, beyond this machine, and there is no API key: the API does"
        " not start",
        remedy="bullpen key add NAME; or: bullpen config set api_host 127.0.0.1",
    )


@check("net.tls_missing_public", Severity.WARNING)
def tls_missing_public(installation: Installation) -> Problem | Verdict:
    """The API listens beyond this machine in plain HTTP."""
    settings = installation.settings
    if is_loopback(settings.api_host):
        return skipped(LOOPBACK_ONLY)
    return Problem(
        text=f"the API listens on {settings.api_host} in plain HTTP: keys and messages can be read"
        " on the network",
        remedy="Put a proxy with TLS in front, and run: bullpen config set api_host 127.0.0.1",
    )


@check("net.host_allowlist_missing", Severity.WARNING)
def host_allowlist_missing(installation: Installation) -> Problem | Verdict:
    """The API listens on all addresses, and api_names is empty or invalid."""
    settings = installation.settings
    names = [each.strip() for each in settings.api_names.split(",") if each.strip()]
    if "*" in names:
        return Problem(
            text="`*` in api_names is not a host name: requests by other names are refused",
            remedy="bullpen config set api_names bullpen.example.org",
        )
    if settings.api_host not in ("0.0.0.0", "::") or names:  # noqa: S104 - it is asked, not bound
        return PASSED
    return Problem(
        text=f"the API listens on {settings.api_host}, and refuses requests by a host name,"
        " because api_names is empty",
        remedy="bullpen config set api_names bullpen.example.org",
    )


@check("net.origin_wildcard", Severity.CRITICAL)
def origin_wildcard(installation: Installation) -> Problem | Verdict:
    """api_origins allows pages of other sites to use the API."""
    origins = [
        each.strip() for each in installation.settings.api_origins.split(",") if each.strip()
    ]
    if "null" in origins:
        return Problem(
            text="`null` in api_origins allows any page, because its frames can have this origin",
            remedy="Remove it from api_origins.",
        )
    if any("*" in each for each in origins):
        return Problem(
            text="`*` in api_origins allows no page, because origins are compared as a whole",
            remedy="List each origin, for example https://office.example.org.",
            severity=Severity.WARNING,
        )
    plain = [each for each in origins if _is_plain_http(each)]
    if plain:
        return Problem(
            text=f"{plain[0]} in api_origins is plain HTTP: others on the network can replace that"
            " page",
            remedy="Serve that page over HTTPS.",
            severity=Severity.WARNING,
        )
    return PASSED


def _is_plain_http(origin: str) -> bool:
    try:
        found = urlsplit(origin)
        return found.scheme == "http" and not is_loopback(found.hostname or "")
    except ValueError:
        return False


@check("net.token_short", Severity.CRITICAL)
def token_short(installation: Installation) -> Problem | Verdict:
    """The owner's token is blank or too short; the API refuses to start."""
    path = installation.settings.token_file
    if not path.exists():
        return skipped("there is no token yet")
    token = path.read_text(encoding="utf-8", errors="replace").strip()
    if len(token) >= MIN_TOKEN_CHARS:
        return PASSED
    return Problem(
        text=f"{path} contains no token of at least {MIN_TOKEN_CHARS} characters",
        remedy=f"rm {path}; bullpen restart creates a new one",
    )


CHECKS = (
    port_taken,
    bind_public_no_auth,
    tls_missing_public,
    host_allowlist_missing,
    origin_wildcard,
    token_short,
)
