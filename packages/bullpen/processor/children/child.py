"""A provider's program as a child process: started by the reaper, streamed, stopped."""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import select
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO

from bullpen.processor.children import fork_server


class Stop:
    """Set once, by any thread; seen by one."""

    def __init__(self) -> None:
        self._heard, self._hearing = os.pipe()
        self.at_once = False
        """No time to end in good order: the work is somebody else's already."""
        self._set = False

    def set(self, *, at_once: bool = False) -> None:
        """Let the run end."""
        self.at_once = self.at_once or at_once
        if not self._set:
            self._set = True
            os.write(self._hearing, b"x")

    def is_set(self) -> bool:
        """Whether it is to end."""
        return self._set

    def wait(self, seconds: float) -> bool:
        """Wait this long for the word; true if it has come."""
        # Unlike select() it takes a file of any number.
        poll = select.poll()
        poll.register(self, select.POLLIN)
        return bool(poll.poll(math.ceil(max(0.0, seconds) * 1000)))

    def fileno(self) -> int:
        """A file that can be read once the word has come."""
        return self._heard

    def close(self) -> None:
        """Let go of the files."""
        os.close(self._heard)
        os.close(self._hearing)


CHUNK = 1 << 16
POLL_SECONDS = 3600.0
"""As long as poll() is asked to wait at most: it cannot wait for a month."""


class ExitReason(StrEnum):
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
class ChildExit:
    """How a child ended."""

    ending: ExitReason
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
        self.end: ChildExit | None = None
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
                self._order(fork_server.KILL if stop.at_once else fork_server.STOP)
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
            self._order(fork_server.STOP)

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
            self.end = ChildExit(ExitReason.LOST)
            return
        self._told += data
        if self._told.endswith(b"\n"):
            self.end = _end(json.loads(self._told))

    def _order(self, order: bytes) -> None:
        with contextlib.suppress(OSError):
            self._control.send(order)


def _end(told: dict[str, int]) -> ChildExit:
    ((what, code),) = told.items()
    endings = {
        "exit": ExitReason.EXITED,
        "error": ExitReason.NOT_STARTED,
        "directory": ExitReason.NO_DIRECTORY,
    }
    return ChildExit(endings[what], code)


PIPE = 1 << 20
PAUSE_SECONDS = 5.0
"""How long a child that was asked to end has for it."""
STOP_SECONDS = 10.0


class Launcher:
    """Starts the nursery when it is first needed, and again should it be gone."""

    def __init__(self, pause: float = PAUSE_SECONDS) -> None:
        self._pause = pause
        self._lock = threading.Lock()
        self._fork_server: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None

    def start(
        self, argv: Sequence[str], directory: Path, environ: Mapping[str, str], stdin: bytes
    ) -> Child:
        """Start a program in this directory, with this text to read."""
        request = {
            "argv": list(argv),
            "directory": str(directory.absolute()),
            "environ": dict(environ),
            "pause": self._pause,
        }
        with contextlib.ExitStack() as theirs, contextlib.ExitStack() as ours:
            asked = theirs.enter_context(_file(json.dumps(request).encode()))
            read = theirs.enter_context(_file(stdin))
            control, keepers = socket.socketpair()
            ours.callback(control.close)
            theirs.callback(keepers.close)
            pipes = []
            for _ in range(2):
                end, begin = os.pipe()
                ours.callback(os.close, end)
                theirs.callback(os.close, begin)
                pipes.append((end, begin))
            (out, out_w), (err, err_w) = pipes
            with contextlib.suppress(OSError):  # there is a limit for all of a user's pipes
                # claude ends without waiting for what it said to be read.
                fcntl.fcntl(out_w, fcntl.F_SETPIPE_SZ, PIPE)
            self._send([asked.fileno(), read.fileno(), out_w, err_w, keepers.fileno()])
            ours.pop_all()
            return Child(control, out, err)

    def stop(self) -> None:
        """End the nursery, and with it whatever still runs."""
        with self._lock:
            self._close()

    def _send(self, fds: list[int]) -> None:
        with self._lock:
            try:
                self._ask(fds)
            except ConnectionError:  # it is gone: begin again with a new one
                self._close()
                self._ask(fds)

    def _ask(self, fds: list[int]) -> None:
        if self._requests is None:
            self._requests = self._begin()
        socket.send_fds(self._requests, [b"r"], fds)

    def _begin(self) -> socket.socket:
        with contextlib.ExitStack() as ours:
            requests, theirs = socket.socketpair()
            ours.callback(requests.close)
            with theirs:
                self._fork_server = subprocess.Popen(
                    [sys.executable, "-I", "-S", fork_server.__file__, str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                    cwd="/",
                )
            ours.pop_all()
        return requests

    def _close(self) -> None:
        if self._requests is not None:
            self._requests.close()
            self._requests = None
        if self._fork_server is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._fork_server.wait(STOP_SECONDS)
            self._fork_server.kill()
            self._fork_server.wait()
            self._fork_server = None


@contextlib.contextmanager
def _file(data: bytes) -> Iterator[IO[bytes]]:
    """A file of no name that holds this, at its beginning."""
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        yield file
