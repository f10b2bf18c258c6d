"""Starts children, through one nursery for the whole process."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from bullpen.processor.children import nursery
from bullpen.processor.children.child import Child

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
            "directory": str(directory),
            "environ": dict(environ),
            "pause": self._pause,
        }
        control, theirs = socket.socketpair()
        out, out_w = os.pipe()
        err, err_w = os.pipe()
        with (
            theirs,
            tempfile.TemporaryFile() as asked,
            tempfile.TemporaryFile() as read,
            os.fdopen(out_w, "wb"),
            os.fdopen(err_w, "wb"),
        ):
            for file, data in ((asked, json.dumps(request).encode()), (read, stdin)):
                file.write(data)
                file.seek(0)
            self._send([asked.fileno(), read.fileno(), out_w, err_w, theirs.fileno()])
        return Child(control, out, err)

    def stop(self) -> None:
        """End the nursery, and with it whatever still runs."""
        with self._lock:
            self._close()

    def _send(self, fds: list[int]) -> None:
        with self._lock:
            try:
                self._ask(fds)
            except OSError:  # it is gone: begin again with a new one
                self._close()
                self._ask(fds)

    def _ask(self, fds: list[int]) -> None:
        if self._requests is None:
            self._begin()
        assert self._requests is not None
        socket.send_fds(self._requests, [b"r"], fds)

    def _begin(self) -> None:
        self._requests, theirs = socket.socketpair()
        with theirs:
            self._nursery = subprocess.Popen(
                [sys.executable, "-I", "-S", nursery.__file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",
            )

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
