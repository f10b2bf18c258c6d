"""Long polls: requests that wait for work until a timeout, or until the client disconnects."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from flask import request

from bullpen.core.errors import Overloaded

_ENDED = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR


def client_gone() -> bool:
    """Whether the client has disconnected, so that a response would be lost."""
    connection = request.environ.get("gunicorn.socket")
    if not isinstance(connection, socket.socket):
        return False
    poll = select.poll()
    try:
        poll.register(connection, _ENDED)
    except (OSError, ValueError):
        return True  # this side has closed it
    return bool(poll.poll(0))


Result = TypeVar("Result")

POLL_SECONDS = 1.0
"""How often a waiting request checks without a notification."""


class LongPoll:
    """Wakes waiting requests; none misses a notification between its check and its wait.

    If all places are taken, the oldest wait of the key with the most waits ends without a result.
    So the requests of one key never block those of another.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._places: dict[str, deque[_Place]] = {}
        """The taken places by key, oldest first."""
        self._notifications = 0
        self._closed = False
        self._condition = threading.Condition()

    def notify(self) -> None:
        """Wake every waiting request to check again."""
        with self._condition:
            self._notifications += 1
            self._condition.notify_all()

    def close(self) -> None:
        """End every wait."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()

    def wait_for(
        self, check: Callable[[], Result | None], seconds: float, key: str
    ) -> Result | None:
        """Return the first result of `check` within this time; `key` is the id of the caller's."""
        deadline = time.monotonic() + seconds
        notifications = self._notifications
        result = check()
        if result is not None or seconds <= 0:
            return result
        place = self._take_place(key)
        try:
            while not self._closed and (left := deadline - time.monotonic()) > 0:
                with self._condition:
                    if place.given_up:
                        break
                    if notifications == self._notifications:
                        self._condition.wait(min(left, POLL_SECONDS))
                    notifications = self._notifications
                if (result := check()) is not None:
                    return result
        finally:
            with self._condition:
                self._leave(place)
        return None

    def _take_place(self, key: str) -> _Place:
        with self._condition:
            if sum(map(len, self._places.values())) >= self._limit:
                most = max(self._places.values(), key=len)
                if len(most) <= len(self._places.get(key, ())) + 1:
                    raise Overloaded(f"{self._limit} requests are waiting already")
                oldest = most[0]
                oldest.given_up = True
                self._leave(oldest)
                self._condition.notify_all()
            place = _Place(key)
            self._places.setdefault(key, deque()).append(place)
        return place

    def _leave(self, place: _Place) -> None:
        places = self._places.get(place.key)
        if places is not None and place in places:
            places.remove(place)
            if not places:
                del self._places[place.key]


class _Place:
    """The place of one waiting request."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.given_up = False
