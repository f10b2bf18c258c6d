"""Who asked, at the other end of the connection: whether that one is still there."""

from __future__ import annotations

import select
import socket

from flask import request

_ENDED = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR


def hung_up() -> bool:
    """Whether who asked has gone: what is found for that one now would be lost on the way."""
    connection = request.environ.get("gunicorn.socket")
    if not isinstance(connection, socket.socket):
        return False
    poll = select.poll()
    try:
        poll.register(connection, _ENDED)
    except (OSError, ValueError):
        return True  # closed on this side already
    return bool(poll.poll(0))
