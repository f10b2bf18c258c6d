"""Starts children, through one nursery for the whole process."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from bullpen.processor.children import nursery
from bullpen.processor.children.child import Child

PIPE = 1 << 20
PAUSE_SECONDS = 5.0
"""How long a child that was asked to end has for it."""
STOP_SECONDS = 10.0


class Launcher:
    """Starts the nursery when it is first needed, and again should it be gone."""

    def __init__(self, pause: float = PAUSE_SECONDS) -> None:
        self._pause = pause
        self._lock = threading.Lock()
        self._nursery: subprocess.Popen[bytes] | None = None
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
                self._nursery = subprocess.Popen(
                    [sys.executable, "-I", "-S", nursery.__file__, str(theirs.fileno())],
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
        if self._nursery is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._nursery.wait(STOP_SECONDS)
            self._nursery.kill()
            self._nursery.wait()
            self._nursery = None


@contextlib.contextmanager
def _file(data: bytes) -> Iterator[IO[bytes]]:
    """A file of no name that holds this, at its beginning."""
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        yield file
