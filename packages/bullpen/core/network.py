"""The API's address, and the directory for Unix sockets."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

from bullpen.core.errors import AddressTaken, UnsafeDirectory
from bullpen.core.settings import Settings


def check_api_address(settings: Settings) -> None:
    """Raise AddressTaken if the API cannot listen on its address."""
    host, port = settings.api_host, settings.api_port
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
    """The URL of the API on this machine."""
    host = "127.0.0.1" if settings.api_host in ("0.0.0.0", "::") else settings.api_host  # noqa: S104
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.api_port}"


def socket_directory(settings: Settings) -> Path:
    """Make the directory for sockets; refuse one that others can write to, as in /tmp."""
    directory = settings.sockets
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = directory.stat()
    if found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise UnsafeDirectory(f"{directory} can be written by others")
    return directory
