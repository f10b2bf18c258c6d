"""A child process of a run, as the processor sees it: its output, its end, and how to stop it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import select
import socket
import struct
import termios
import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from bullpen.processor.children import nursery
from bullpen.processor.children.stop import Stop

CHUNK = 1 << 16
POLL_SECONDS = 3600.0
"""As long as poll() is asked to wait at most: it cannot wait for a month."""


class Ending(StrEnum):
    """Why a child is over."""

    EXITED = "exited"
    NOT_STARTED = "not started"
    NO_DIRECTORY = "no directory"
    LOST = "lost"
    """Its keeper is gone, and nobody knows how it ended."""


class Limit(StrEnum):
    """What a child may take only so much time for."""

    IDLE = "idle"
    TOTAL = "total"


@dataclass(frozen=True, slots=True)
class End:
    """How a child ended."""

    ending: Ending
    code: int = 0
    """The exit code, minus a signal's number, or the errno of what could not be started."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a child may take."""

    idle: float
    total: float


class Child:
    """One running child."""

    def __init__(self, control: socket.socket, out: int, err: int) -> None:
        self._control = control
        self._out = out
        self._err = err
        self._open = [out, err]
        self._told = b""
        self._poll = select.poll()
        for each in (out, err, control.fileno()):
            self._poll.register(each, select.POLLIN)
        self.end: End | None = None
        self.timeout: Limit | None = None
        """Which limit it broke."""
        self.stopped = False
        """Whether it was told to end before it had."""

    def output(self, stop: Stop, limits: Limits) -> Iterator[tuple[bool, bytes]]:
        """What it writes until it is over: whether it is its standard error, and the bytes.

        It is stopped when `stop` is set or a limit is broken.
        """
        began = heard = time.monotonic()
        self._poll.register(stop, select.POLLIN)
        while True:
            ready = self._ready(min(heard + limits.idle, began + limits.total))
            for each in [fd for fd in self._open if fd in ready]:
                data = os.read(each, CHUNK)
                if data:
                    heard = time.monotonic()
                    yield each == self._err, data
                else:
                    self._poll.unregister(each)
                    self._open.remove(each)
            if self._control.fileno() in ready:
                self._hear()
            if self.end is not None:
                break
            if stop.fileno() in ready:
                self._poll.unregister(stop)
                self.stopped = True
                self._order(nursery.KILL if stop.at_once else nursery.STOP)
            elif not (self.stopped or self.timeout):
                self._keep_to(limits, began, heard, quiet=not ready)
        yield from self._rest()

    def close(self) -> None:
        """Let go of it; what still runs is ended by its keeper."""
        self._control.close()
        os.close(self._out)
        os.close(self._err)

    def _ready(self, until: float) -> list[int]:
        if self.stopped or self.timeout:
            left = POLL_SECONDS
        else:
            left = min(max(0.0, until - time.monotonic()), POLL_SECONDS)
        return [fd for fd, _ in self._poll.poll(math.ceil(left * 1000))]

    def _keep_to(self, limits: Limits, began: float, heard: float, *, quiet: bool) -> None:
        now = time.monotonic()
        if now - began >= limits.total:
            self.timeout = Limit.TOTAL
        # What waits to be read was not late, though whoever reads it may have been.
        elif quiet and now - heard >= limits.idle:
            self.timeout = Limit.IDLE
        if self.timeout:
            self._order(nursery.STOP)

    def _rest(self) -> Iterator[tuple[bool, bytes]]:
        # All of it is in the pipes by now. Not to their end, which comes only when everybody who
        # was given them lets go: that may be a service which lives for years.
        for each in self._open:
            (left,) = struct.unpack("i", fcntl.ioctl(each, termios.FIONREAD, bytes(4)))
            while left > 0 and (data := os.read(each, left)):
                left -= len(data)
                yield each == self._err, data

    def _hear(self) -> None:
        try:
            data = self._control.recv(CHUNK)
        except OSError:
            data = b""
        if not data:
            self.end = End(Ending.LOST)
            return
        self._told += data
        if self._told.endswith(b"\n"):
            self.end = _end(json.loads(self._told))

    def _order(self, order: bytes) -> None:
        with contextlib.suppress(OSError):
            self._control.send(order)


def _end(told: dict[str, int]) -> End:
    ((what, code),) = told.items()
    endings = {
        "exit": Ending.EXITED,
        "error": Ending.NOT_STARTED,
        "directory": Ending.NO_DIRECTORY,
    }
    return End(endings[what], code)
