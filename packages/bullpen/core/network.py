"""The API's address, and the directory for Unix sockets."""

from __future__ import annotations

import errno
import ipaddress
import socket
from pathlib import Path

from bullpen.core.errors import AddressTaken
from bullpen.core.files import PRIVATE_DIRECTORY_MODE, check_only_ours
from bullpen.core.settings import Settings

OTHER_LOOPBACK = {"127.0.0.1": "::1", "localhost": "::1", "0.0.0.0": "::1", "::1": "127.0.0.1"}  # noqa: S104

LISTENER_SECONDS = 1.0


def check_api_address(settings: Settings) -> None:
    """Raise `AddressTaken` if the API cannot listen on its addresses."""
    for host in listen_addresses(settings):
        _check_address(host, settings.api_port)


def _check_address(host: str, port: int) -> None:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            # Two sockets may be bound to one port, but only one of them can listen.
            probe.listen(1)
    except UnicodeError:
        raise AddressTaken(
            f"{host!r} is not a host name", hint="Correct the setting `api_host`."
        ) from None
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise AddressTaken(f"port {port} on {host} is in use by another program") from None
        raise AddressTaken(
            f"the API cannot listen on port {port} on {host}: {error.strerror or error}",
            hint="Correct the settings `api_host` and `api_port`.",
        ) from None


def has_listener(settings: Settings) -> bool:
    """Whether any program listens on the API's addresses."""
    for host in listen_addresses(settings):
        try:
            socket.create_connection((host, settings.api_port), LISTENER_SECONDS).close()
        except (OSError, UnicodeError):
            continue
        return True
    return False


def listening_pids(port: int) -> set[int] | None:
    """This user's processes that listen on a port; None if the system does not tell."""
    import psutil  # only here: most commands start without it

    try:
        found = psutil.net_connections("tcp")
    except (psutil.Error, OSError):
        return None
    return {
        each.pid
        for each in found
        if each.status == psutil.CONN_LISTEN and each.laddr and each.laddr.port == port and each.pid
    }


def api_url(settings: Settings) -> str:
    """The URL of the API on this machine."""
    host = "127.0.0.1" if settings.api_host in ("0.0.0.0", "::") else settings.api_host  # noqa: S104
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.api_port}"


def listen_addresses(settings: Settings) -> tuple[str, ...]:
    """The addresses on which the API listens: its own, and for a loopback address also the other.

    Browsers try both loopback addresses, and another user's program on the second one would get
    their cookies.
    """
    other = OTHER_LOOPBACK.get(settings.api_host)
    if other is None or not _has_address(other):
        return (settings.api_host,)
    return (settings.api_host, other)


def browser_url(settings: Settings, name: str) -> str:
    """The URL of the API for browsers; `name` is its host name for browsers on this machine."""
    if settings.public_url:
        return settings.public_url
    if is_loopback(settings.api_host) or settings.api_host in ("0.0.0.0", "::"):  # noqa: S104
        return f"http://{name}:{settings.api_port}"
    return api_url(settings)


def is_loopback(host: str) -> bool:
    """Whether this is a loopback address or name."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _has_address(host: str) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind((host, 0))
    except OSError:
        return False
    return True


def socket_directory(settings: Settings, *, make: bool = True) -> Path:
    """The directory for sockets, which may be in /tmp; it must belong to this user alone."""
    directory = settings.sockets
    if make:
        directory.mkdir(mode=PRIVATE_DIRECTORY_MODE, parents=True, exist_ok=True)
    check_only_ours(directory)
    return directory
