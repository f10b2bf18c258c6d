"""One process of each service under a home's supervisor: whoever holds its lock is it."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bullpen.core.errors import Overloaded, RunsAlready
from bullpen.core.services.directories import make_directories
from bullpen.core.settings import Settings

LOCK_SUFFIX = ".lock"
START_LOCK_SECONDS = 120.0
LOCK_POLL_SECONDS = 0.05


@contextmanager
def service_lock(settings: Settings, name: str) -> Iterator[None]:
    """Be the one process of this service, or be refused; the system lets go when it ends."""
    with _file_lock(settings, lock_file(settings, name), 0.0) as holder:
        if holder is not None:
            raise RunsAlready(f"the {name} of this supervisor runs already, as process {holder}")
        yield


@contextmanager
def start_lock(settings: Settings) -> Iterator[None]:
    """Be the only one that starts or stops this home's services; wait for whoever is at it."""
    with _file_lock(settings, settings.run / "starting", START_LOCK_SECONDS) as holder:
        if holder is not None:
            raise Overloaded(f"process {holder} is starting or stopping the services")
        yield


@contextmanager
def _file_lock(settings: Settings, path: Path, patience: float) -> Iterator[int | str | None]:
    """Hold the lock; or, after so many seconds, give the process that does."""
    make_directories(settings)
    # Programs that it starts do not inherit the lock: it must not outlive the service.
    number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + patience
        while not _try_lock(number):
            if time.monotonic() >= deadline:
                yield _read_pid(path) or "of somebody"
                return
            time.sleep(LOCK_POLL_SECONDS)
        os.ftruncate(number, 0)
        os.write(number, f"{os.getpid()}\n".encode())
        yield None
    finally:
        os.close(number)


def _try_lock(number: int) -> bool:
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def lock_file(settings: Settings, name: str) -> Path:
    """Where the lock of a service is."""
    return settings.run / f"{name}{LOCK_SUFFIX}"


def lock_holders(settings: Settings) -> dict[str, int]:
    """The services of this home that have a process, under a supervisor or not, and its id."""
    found = {}
    for path in sorted(settings.run.glob(f"*{LOCK_SUFFIX}")):
        if (pid := _holder(path)) is not None:
            found[path.stem] = pid
    return found


def _holder(path: Path) -> int | None:
    try:
        number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(number, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read_pid(path)
    finally:
        os.close(number)
    return None


def _read_pid(path: Path) -> int | None:
    """Who wrote its id there; none in the moment between taking the lock and writing."""
    text = path.read_text(encoding="utf-8").strip()
    return int(text) if text.isdecimal() else None
