"""A limited number of permits, first come, first served, refused if none will be free soon."""

from __future__ import annotations

import threading
import time
from collections import deque


class Permits:
    """Permits for an action that a limited number of threads may do at once.

    Threads wait for a permit in the order of arrival while permits are returned. If none was
    returned for a while, or the last one was returned without success, the holders are stuck, and a
    thread that would have to wait is refused.
    """

    def __init__(self, count: int, patience: float) -> None:
        self._count = self._free = count
        self._patience = patience
        self._lock = threading.Lock()
        self._waiting: deque[_Turn] = deque()
        self._last_moved = time.monotonic()
        self._in_vain = False

    @property
    def used(self) -> bool:
        """Whether a permit is taken."""
        return self._free < self._count

    def acquire(self, seconds: float) -> bool:
        """Take a permit, waiting at most this long; false if none will be free soon."""
        with self._lock:
            if self._free > 0:
                self._free -= 1
                self._last_moved = time.monotonic()
                return True
            if self._stands_still():
                return False
            turn = _Turn()
            self._waiting.append(turn)
        deadline = time.monotonic() + seconds
        while not turn.wait(min(deadline - time.monotonic(), self._patience)):
            with self._lock:
                if turn in self._waiting and (self._stands_still() or time.monotonic() >= deadline):
                    self._waiting.remove(turn)
                    return False
        return turn.granted

    def release(self, *, in_vain: bool = False) -> None:
        """Return a permit; the thread that has waited longest takes it."""
        with self._lock:
            self._in_vain = in_vain
            if in_vain:
                while self._waiting:
                    self._waiting.popleft().end(granted=False)
            else:
                self._last_moved = time.monotonic()
            if self._waiting:
                self._waiting.popleft().end(granted=True)
            else:
                self._free += 1

    def _stands_still(self) -> bool:
        return self._in_vain or time.monotonic() - self._last_moved >= self._patience


class _Turn:
    """The turn of a waiting thread."""

    __slots__ = ("_ended", "granted")

    def __init__(self) -> None:
        self._ended = threading.Event()
        self.granted = False

    def wait(self, seconds: float) -> bool:
        return self._ended.wait(max(0.0, seconds))

    def end(self, *, granted: bool) -> None:
        self.granted = granted
        self._ended.set()
