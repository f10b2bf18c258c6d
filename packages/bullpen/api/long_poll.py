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
    """Whether the client has disconnected: an answer to it would be lost."""
    connection = request.environ.get("gunicorn.socket")
    if not isinstance(connection, socket.socket):
        return False
    poll = select.poll()
    try:
        poll.register(connection, _ENDED)
    except (OSError, ValueError):
        return True  # this side has closed it already
    return bool(poll.poll(0))


Result = TypeVar("Result")

POLL_SECONDS = 1.0
"""How often a waiting request checks without a notification."""


class LongPoll:
    """Wakes waiting requests; none misses a notification between its check and its wait."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._waiting = 0
        self._notifications = 0
        self._closed = False
        self._condition = threading.Condition()

    def notify(self) -> None:
        """Let every waiting request check again."""
        with self._condition:
            self._notifications += 1
            self._condition.notify_all()

    def close(self) -> None:
        """End every wait."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()

    def wait_for(self, check: Callable[[], Result | None], seconds: float) -> Result | None:
        """The first result of `check`, at once or within this time."""
        deadline = time.monotonic() + seconds
        notifications = self._notifications
        result = check()
        if result is not None or seconds <= 0:
            return result
        self._enter()
        try:
            while not self._closed and (left := deadline - time.monotonic()) > 0:
                with self._condition:
                    if notifications == self._notifications:
                        self._condition.wait(min(left, POLL_SECONDS))
                    notifications = self._notifications
                if (result := check()) is not None:
                    return result
        finally:
            with self._condition:
                self._waiting -= 1
        return None

    def _enter(self) -> None:
        with self._condition:
            if self._waiting >= self._limit:
                raise Overloaded(f"{self._limit} requests wait already")
            self._waiting += 1
