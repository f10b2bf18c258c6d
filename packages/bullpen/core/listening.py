"""Whether a program may listen at an address: asked before it tries for seconds, and in words."""

from __future__ import annotations

import errno
import socket

from bullpen.core.errors import AddressTaken
from bullpen.core.settings import Settings


def check_api_address(settings: Settings) -> None:
    """Refuse an address at which the API could not listen."""
    host, port = settings.api_host, settings.api_port
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            # Two may be bound to one port; only one of them can listen.
            probe.listen(1)
    except UnicodeError:
        raise AddressTaken(f"{host!r} is no name of a host", hint="Correct `api_host`.") from None
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise AddressTaken(
                f"port {port} of {host} is taken: another program listens there"
            ) from None
        raise AddressTaken(
            f"the API cannot listen on port {port} of {host}: {error.strerror or error}",
            hint="Correct the settings `api_host` and `api_port`.",
        ) from None


def api_url(settings: Settings) -> str:
    """The API's address for whoever is on this machine."""
    host = "127.0.0.1" if settings.api_host in ("0.0.0.0", "::") else settings.api_host  # noqa: S104
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.api_port}"
