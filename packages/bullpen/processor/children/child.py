"""A provider's program as a child process: started, read, and stopped."""

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
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO

from bullpen.processor.children import fork_server

CHUNK = 1 << 16

POLL_SECONDS = 3600.0
"""The longest wait of one poll(); its argument is limited."""

PIPE = 1 << 20

PAUSE_SECONDS = 5.0
"""How long a child has to end after SIGINT."""

STOP_SECONDS = 10.0


class ExitReason(StrEnum):
    """Why a child ended."""

    EXITED = "exited"
    NOT_STARTED = "not started"
    NO_DIRECTORY = "no directory"
    NO_USER = "no user"
    """It could not become its user, or that user cannot read the required paths."""
    LOST = "lost"
    """Its reaper is gone, and its exit code is unknown."""


class Limit(StrEnum):
    """The time limit that a child exceeded."""

    IDLE = "idle"
    TOTAL = "total"


@dataclass(frozen=True, slots=True)
class ChildExit:
    """How a child ended."""

    reason: ExitReason
    code: int = 0
    """The exit code, the negative number of a signal, or the errno of a failed start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildUser:
    """The Unix user that a child becomes before it executes the program."""

    uid: int
    gid: int
    groups: tuple[int, ...]
    needs: tuple[str, ...]
    """Paths that this user must be able to read; otherwise the child does not start."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How many seconds a child may be silent, and may run in total."""

    idle: float
    total: float


class Stop:
    """Stops a run; set by any thread and watched by the thread of the run."""

    def __init__(self) -> None:
        self._read_end, self._write_end = os.pipe()
        self.at_once = False
        """True if the program is killed at once, because its claim is lost."""
        self._set = False

    def set(self, *, at_once: bool = False) -> None:
        """Stop the run."""
        self.at_once = self.at_once or at_once
        if not self._set:
            self._set = True
            os.write(self._write_end, b"x")

    def is_set(self) -> bool:
        """Whether the run is stopped."""
        return self._set

    def wait(self, seconds: float) -> bool:
        """Wait up to this long; true if the run is stopped."""
        # Unlike select(), poll() accepts file descriptors of any number.
        poll = select.poll()
        poll.register(self, select.POLLIN)
        return bool(poll.poll(math.ceil(max(0.0, seconds) * 1000)))

    def fileno(self) -> int:
        """A file descriptor that is readable once the run is stopped."""
        return self._read_end

    def close(self) -> None:
        """Close the file descriptors."""
        os.close(self._read_end)
        os.close(self._write_end)


class Launcher:
    """Starts children with the fork server, which it starts or restarts when needed."""

    def __init__(self, pause: float = PAUSE_SECONDS) -> None:
        self._pause = pause
        self._lock = threading.Lock()
        self._fork_server: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None

    def start(
        self,
        argv: Sequence[str],
        directory: Path,
        environ: Mapping[str, str],
        stdin: bytes,
        *,
        wrappers: int = 0,
        user: ChildUser | None = None,
    ) -> Child:
        """Start a program in this directory, with this text as its input.

        `wrappers` is the number of processes between the reaper and the program, each the parent of
        the next. `user` is the user of the program, if it is not that of this process.
        """
        request = {
            "argv": list(argv),
            "directory": str(directory.absolute()),
            "environ": dict(environ),
            "pause": self._pause,
            "wrappers": wrappers,
            "user": None if user is None else asdict(user),
        }
        with contextlib.ExitStack() as theirs, contextlib.ExitStack() as ours:
            asked = theirs.enter_context(_temporary_file(json.dumps(request).encode()))
            read = theirs.enter_context(_temporary_file(stdin))
            control, reaper_end = socket.socketpair()
            ours.callback(control.close)
            theirs.callback(reaper_end.close)
            pipes = []
            for _ in range(2):
                end, begin = os.pipe()
                ours.callback(os.close, end)
                theirs.callback(os.close, begin)
                pipes.append((end, begin))
            (out, out_w), (err, err_w) = pipes
            with contextlib.suppress(OSError):  # all pipes of a user have a common limit
                # claude exits without waiting until its output is read.
                fcntl.fcntl(out_w, fcntl.F_SETPIPE_SZ, PIPE)
            self._send([asked.fileno(), read.fileno(), out_w, err_w, reaper_end.fileno()])
            ours.pop_all()
            return Child(control, out, err)

    def stop(self) -> None:
        """End the fork server, and with it all children."""
        with self._lock:
            self._close()

    def _send(self, fds: list[int]) -> None:
        with self._lock:
            try:
                self._ask(fds)
            except ConnectionError:  # it has ended: start a new one
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


class Child:
    """One running child."""

    def __init__(self, control: socket.socket, out: int, err: int) -> None:
        self._control = control
        self._out = out
        self._err = err
        self._open = [out, err]
        self._report = b""
        self._poll = select.poll()
        for each in (out, err, control.fileno()):
            self._poll.register(each, select.POLLIN)
        self.end: ChildExit | None = None
        self.timeout: Limit | None = None
        """The limit that it exceeded."""
        self.stopped = False
        """Whether it was stopped before it ended."""

    def output(self, stop: Stop, limits: Limits) -> Iterator[tuple[bool, bytes]]:
        """Yield its output until it ends: whether it is standard error, and the bytes.

        It is stopped when `stop` is set or a limit is exceeded.
        """
        began = read_at = time.monotonic()
        self._poll.register(stop, select.POLLIN)
        while True:
            ready = self._ready(min(read_at + limits.idle, began + limits.total))
            for each in [fd for fd in self._open if fd in ready]:
                data = os.read(each, CHUNK)
                if data:
                    read_at = time.monotonic()
                    yield each == self._err, data
                else:
                    self._poll.unregister(each)
                    self._open.remove(each)
            if self._control.fileno() in ready:
                self._read_report()
            if self.end is not None:
                break
            if stop.fileno() in ready:
                self._poll.unregister(stop)
                self.stopped = True
                self._send_order(fork_server.KILL if stop.at_once else fork_server.STOP)
            elif not (self.stopped or self.timeout):
                self._check_limits(limits, began, read_at, quiet=not ready)
        yield from self._rest()

    def close(self) -> None:
        """Close its files; its reaper ends the remaining processes."""
        self._control.close()
        os.close(self._out)
        os.close(self._err)

    def _ready(self, until: float) -> list[int]:
        if self.stopped or self.timeout:
            left = POLL_SECONDS
        else:
            left = min(max(0.0, until - time.monotonic()), POLL_SECONDS)
        return [fd for fd, _ in self._poll.poll(math.ceil(left * 1000))]

    def _check_limits(self, limits: Limits, began: float, read_at: float, *, quiet: bool) -> None:
        now = time.monotonic()
        if now - began >= limits.total:
            self.timeout = Limit.TOTAL
        # Output that is ready was written in time, even if this thread reads it late.
        elif quiet and now - read_at >= limits.idle:
            self.timeout = Limit.IDLE
        if self.timeout:
            self._send_order(fork_server.STOP)

    def _rest(self) -> Iterator[tuple[bool, bytes]]:
        # All output is in the pipes by now. They end only when every process that inherited them
        # closes them, and such a process may run for years.
        for each in self._open:
            (left,) = struct.unpack("i", fcntl.ioctl(each, termios.FIONREAD, bytes(4)))
            while left > 0 and (data := os.read(each, left)):
                left -= len(data)
                yield each == self._err, data

    def _read_report(self) -> None:
        try:
            data = self._control.recv(CHUNK)
        except OSError:
            data = b""
        if not data:
            self.end = ChildExit(ExitReason.LOST)
            return
        self._report += data
        if self._report.endswith(b"\n"):
            self.end = _parse_report(json.loads(self._report))

    def _send_order(self, order: bytes) -> None:
        with contextlib.suppress(OSError):
            self._control.send(order)


def _parse_report(report: dict[str, int]) -> ChildExit:
    ((what, code),) = report.items()
    reasons = {
        "exit": ExitReason.EXITED,
        "error": ExitReason.NOT_STARTED,
        "directory": ExitReason.NO_DIRECTORY,
        "user": ExitReason.NO_USER,
    }
    return ChildExit(reasons[what], code)


@contextlib.contextmanager
def _temporary_file(data: bytes) -> Iterator[IO[bytes]]:
    """An unnamed file with this content."""
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        yield file
