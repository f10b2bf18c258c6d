"""Long polls: a request that waits until there is work, its time is over or its client is gone."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from flask import request

from bullpen.core.errors import Overloaded

_ENDED = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR


def client_gone() -> bool:
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


Found = TypeVar("Found")

LOOK_SECONDS = 1.0
"""How often one who waits looks without being called."""


class LongPoll:
    """Rings for all who wait. Nobody misses a ring between his look and his wait."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting = 0
        self._rings = 0
        self._closed = False
        self._condition = threading.Condition()

    def ring(self) -> None:
        """Let everybody look again."""
        with self._condition:
            self._rings += 1
            self._condition.notify_all()

    def close(self) -> None:
        """Let nobody wait any more."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()

    def wait_for(self, look: Callable[[], Found | None], seconds: float) -> Found | None:
        """What `look` finds, at once or within this time."""
        deadline = time.monotonic() + seconds
        rings = self._rings
        found = look()
        if found is not None or seconds <= 0:
            return found
        self._enter()
        try:
            while not self._closed and (left := deadline - time.monotonic()) > 0:
                with self._condition:
                    if rings == self._rings:
                        self._condition.wait(min(left, LOOK_SECONDS))
                    rings = self._rings
                if (found := look()) is not None:
                    return found
        finally:
            with self._condition:
                self._waiting -= 1
        return None

    def _enter(self) -> None:
        with self._condition:
            if self._waiting >= self._most:
                raise Overloaded(f"{self._most} requests wait already")
            self._waiting += 1
