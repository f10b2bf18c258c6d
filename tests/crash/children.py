"""Processes forked from a warm server, so that they begin at once; killed by their own pids."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TypeAlias

import psutil

LIMIT = 60.0
"""How long a test waits for what takes milliseconds, before it says that it never came."""

WARM = "tests.crash.warm"

Body: TypeAlias = Callable[..., None]

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload([WARM])


class Child:
    """One process that a test may kill, stop, go on with and wait for."""

    def __init__(self, body: Body, arguments: tuple[object, ...], errors: Path) -> None:
        self._errors = errors
        self._process: BaseProcess = _context.Process(
            target=_guarded, args=(body, arguments, errors), daemon=True
        )
        self._process.start()

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it runs still."""
        return self._process.is_alive()

    def send(self, number: signal.Signals) -> None:
        """Send a signal, if it has not ended."""
        if self._process.is_alive():
            os.kill(self.pid, number)

    def wait(self) -> int:
        """How it ended: its exit status, or minus the signal that killed it."""
        self._process.join(LIMIT)
        code = self._process.exitcode
        assert code is not None, f"process {self.pid} did not end within {LIMIT} s"
        assert code != 1, self._errors.read_text()
        return code

    def kill(self) -> int:
        """kill -9."""
        self.send(signal.SIGKILL)
        return self.wait()

    def wait_until_stopped(self) -> None:
        """Wait until SIGSTOP has taken effect."""
        process = psutil.Process(self.pid)
        until(lambda: process.status() == psutil.STATUS_STOPPED, "the process stops")


class Children:
    """The processes of one test; none is left when it ends."""

    def __init__(self, errors: Path) -> None:
        self.errors = errors
        self._all: list[Child] = []

    def start(self, body: Body, *arguments: object) -> Child:
        """Run this function of a module in a process of its own."""
        child = Child(body, arguments, self.errors)
        self._all.append(child)
        return child

    def run(self, body: Body, *arguments: object) -> int:
        """The same, to its end."""
        return self.start(body, *arguments).wait()

    def alive(self) -> list[Child]:
        """Those that run."""
        return [child for child in self._all if child.alive]

    def check(self) -> None:
        """Fail if one of them met an error that it did not expect."""
        if self.errors.exists():
            raise AssertionError(self.errors.read_text())


@contextmanager
def brood(errors: Path) -> Iterator[Children]:
    """Children that are killed at the end, come what may."""
    children = Children(errors)
    try:
        yield children
    finally:
        for child in children.alive():
            child.send(signal.SIGKILL)
            child.send(signal.SIGCONT)


def until(condition: Callable[[], bool], what: str, limit: float = LIMIT) -> None:
    """Wait for something to become true."""
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline, f"after {limit} s this has not happened: {what}"
        time.sleep(0.01)


def orphaned() -> bool:
    """Whether the test that started this process is gone: then it must end, too."""
    parent = multiprocessing.parent_process()
    return parent is None or not parent.is_alive()


def append(path: Path, line: str) -> None:
    """Add a line that survives SIGKILL, and that no other process's line can tear."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(file, f"{line}\n".encode())
    finally:
        os.close(file)


def lines(path: Path) -> list[str]:
    """What was appended."""
    return path.read_text().splitlines() if path.exists() else []


def _guarded(body: Body, arguments: tuple[object, ...], errors: Path) -> None:
    try:
        body(*arguments)
    except Exception:
        append(errors, traceback.format_exc())
        raise SystemExit(1) from None
