"""A fake of a platform as a process of its own, for tests that kill it.

`driven.py` runs the fake of any channel.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.channels.fakes.base import CONTROL, HOST, WAIT_SECONDS, FakePlatform
from tests.ports import free_port

ROOT = Path(__file__).parents[3]


def serve(kind: type[FakePlatform]) -> None:
    """Run a fake until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(description=kind.__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--state", type=Path, help="keeps what the platform knows over restarts")
    given = parser.parse_args()
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    with kind(given.port, state=given.state) as fake:
        print(fake.url, flush=True)
        ended.wait()


class FakeProcess:
    """A fake in a process of its own, always on the same port and with the same state."""

    def __init__(self, module: str, state: Path, *more: str) -> None:
        """`module` is the name of a module that calls `serve`, after it has read `more`."""
        self.port = free_port()
        self.url = f"http://{HOST}:{self.port}"
        arguments = ["--port", str(self.port), "--state", str(state)]
        self._command = [sys.executable, "-m", module, *more, *arguments]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self.kill()

    def start(self) -> None:
        """Start it; returns when it answers."""
        self._process = subprocess.Popen(self._command, cwd=ROOT, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the fake ended at its start"

    def kill(self) -> None:
        """End it by SIGKILL."""
        assert self._process is not None, "it is not running"
        process, self._process = self._process, None
        process.kill()
        process.communicate()

    def call(self, name: str, **arguments: object) -> object:
        """Call one of its `controls`; waits while its port is closed."""
        end = time.monotonic() + WAIT_SECONDS
        data = json.dumps(arguments).encode()
        request = urllib.request.Request(f"{self.url}{CONTROL}{name}", data=data)
        while True:
            try:
                with urllib.request.urlopen(request, timeout=WAIT_SECONDS) as answer:
                    value: object = json.load(answer)["value"]
                    return value
            except urllib.error.HTTPError:
                raise
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.02)
