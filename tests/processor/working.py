"""Processors at work, in this process or in a child, and what becomes of messages."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bullpen.core.message import Failure
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.processor.children.child import Stop
from bullpen.processor.main import Processor
from bullpen.processor.plugins import Plugins
from bullpen.processor.providers.base import Provider, Reply, ReportProgress, RunRequest
from bullpen.processor.providers.echo import Echo

SOON = 60.0
"""Generous: what is waited for takes milliseconds on a quiet machine."""


def eventually(condition: Callable[[], bool], what: str, seconds: float = SOON) -> None:
    """Wait until this holds; to look takes at most half of the time."""
    deadline = time.monotonic() + seconds
    while True:
        looked = time.monotonic()
        if condition():
            return
        now = time.monotonic()
        assert now < deadline, f"not within {seconds} s: {what}"
        time.sleep(max(0.01, now - looked))


@contextmanager
def processing(
    store: Store, provider: Provider | None = None, plugins: Plugins | None = None
) -> Iterator[Processor]:
    """A processor in this process, stopped at the end of the block."""
    answers = provider or Echo()
    processor = Processor(store, lambda name, custom: answers, plugins)
    processor.start()
    try:
        yield processor
    finally:
        processor.stop()


class Scripted:
    """A provider whose runs begin and end when the test says so."""

    def __init__(self) -> None:
        self.turns: list[RunRequest] = []
        self.stopped: list[RunRequest] = []
        self.running = 0
        self.most = 0
        self.let_go = threading.Event()
        self.result: Reply | Failure | Exception = Reply(text="done")
        self._lock = threading.Lock()

    def run(self, turn: RunRequest, stop: Stop, tell: ReportProgress) -> Reply | Failure | None:
        """Wait for the test's word, or for the order to stop."""
        with self._lock:
            self.turns.append(turn)
            self.running += 1
            self.most = max(self.most, self.running)
        try:
            deadline = time.monotonic() + 2 * SOON
            while not self.let_go.is_set() and time.monotonic() < deadline:
                if stop.wait(0.01):
                    self.stopped.append(turn)
                    return None
            if isinstance(self.result, Exception):
                raise self.result
            return self.result
        finally:
            with self._lock:
                self.running -= 1


def environ(settings: Settings, **more: str) -> dict[str, str]:
    """The environment of a child process of these settings."""
    inherited = {name: text for name, text in os.environ.items() if "BULLPEN_" not in name}
    return {
        **inherited,
        "BULLPEN_HOME": str(settings.home),
        "BULLPEN_WORKSPACE": str(settings.workspace),
        "BULLPEN_DATABASE_URL": settings.database_url,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        **more,
    }


@contextmanager
def child(
    settings: Settings, service: str = "processor", **more: str
) -> Iterator[subprocess.Popen[bytes]]:
    """`bullpen run SERVICE` as a process of its own, killed at the end of the block."""
    with Path(settings.home / f"{service}.out").open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-c", "from bullpen.cli.main import main; main()", "run", service],
            env=environ(settings, **more),
            stdout=out,
            stderr=out,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(SOON)


def output(settings: Settings) -> str:
    """What the child has printed so far."""
    return (settings.home / "processor.out").read_text()
