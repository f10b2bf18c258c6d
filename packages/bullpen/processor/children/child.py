"""A child process of a run, as the processor sees it: its output, its end, and how to stop it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from bullpen.processor.children import nursery
from bullpen.processor.children.stop import Stop

CHUNK = 1 << 16


class Ending(StrEnum):
    """Why a child is over."""

    EXITED = "exited"
    NOT_STARTED = "not started"
    LOST = "lost"
    """Its keeper is gone, and nobody knows how it ended."""


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
        self.end: End | None = None
        self.timeout: str | None = None
        """Which limit it broke."""

    def output(self, stop: Stop, limits: Limits) -> Iterator[tuple[bool, bytes]]:
        """What it writes until it is over: whether it is its standard error, and the bytes.

        It is stopped when `stop` is set or a limit is broken.
        """
        began = heard = time.monotonic()
        ends = {self._out, self._err}
        told = b""
        stopping = False
        while ends or self.end is None:
            waiting = [*ends, *(() if stopping else (stop,))]
            if self.end is None:
                waiting.append(self._control)
            now = time.monotonic()
            left = min(heard + limits.idle, began + limits.total) - now
            ready, _, _ = select.select(waiting, [], [], None if stopping else max(0.0, left))
            for each in (self._out, self._err):
                if each in ready:
                    data = os.read(each, CHUNK)
                    heard = time.monotonic()
                    if data:
                        yield each == self._err, data
                    else:
                        ends.discard(each)
            if self._control in ready:
                told = self._hear(told)
            if stop in ready:
                stopping = True
                self._order(nursery.KILL if stop.at_once else nursery.STOP)
            elif not ready and not stopping:
                stopping = True
                self.timeout = "idle" if now - began < limits.total else "total"
                self._order(nursery.STOP)

    def close(self) -> None:
        """Let go of it; what still runs is ended by its keeper."""
        self._control.close()
        os.close(self._out)
        os.close(self._err)

    def _hear(self, before: bytes) -> bytes:
        try:
            data = self._control.recv(CHUNK)
        except OSError:
            data = b""
        if not data:
            self.end = End(Ending.LOST)
            return b""
        *lines, rest = (before + data).split(b"\n")
        for line in lines:
            answer = json.loads(line)
            if "exit" in answer:
                self.end = End(Ending.EXITED, answer["exit"])
            elif "error" in answer:
                self.end = End(Ending.NOT_STARTED, answer["error"])
        return rest

    def _order(self, order: bytes) -> None:
        with contextlib.suppress(OSError):
            self._control.send(order)
