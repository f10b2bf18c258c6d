"""Listeners in the register, and what they hear."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bullpen.core.background import register_worker
from bullpen.core.message import NewMessage
from bullpen.core.queue.enqueue import enqueue
from bullpen.core.queue.lanes import create_lane
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.wake.listener import Listener

SOON = 60.0
"""Generous: a hint takes less than a millisecond, and without it nothing comes at all."""
NO_POLL = {"poll_seconds": 300.0}
"""Settings under which only a hint can end a wait."""


@contextmanager
def listening(store: Store) -> Iterator[Listener]:
    """A listener that is in the register of workers."""
    listener = store.listen()
    try:
        with store.write() as tx:
            register_worker(tx, "test", listener.address)
        yield listener
    finally:
        listener.close()


def heard(listener: Listener, topic: str) -> bool:
    """Whether there is a hint for this topic, soon."""
    deadline = time.monotonic() + SOON
    while (left := deadline - time.monotonic()) > 0:
        if topic in listener.wait(left):
            return True
    return False


def open_lane(store: Store) -> None:
    """Open the lane that `send` writes to."""
    with store.write() as tx:
        create_lane(tx, "coder")


def send(store: Store, text: str = "hello") -> str:
    """Enqueue one message."""
    with store.write() as tx:
        return enqueue(tx, NewMessage(agent="coder", message=text)).message_id


def python(settings: Settings, code: str) -> subprocess.Popen[str]:
    """Another process, with `store` opened on the same database; it prints and reads lines."""
    prelude = (
        "import os, sys\n"
        "from bullpen.core.settings import Settings\n"
        "from bullpen.core.store.open import open_store\n"
        "from bullpen.core.background import register_worker\n"
        "from tests.wake.listening import send, heard, listening\n"
        "store = open_store(Settings.load(os.environ))\n"
    )
    environ = {
        **os.environ,
        "BULLPEN_HOME": str(settings.home),
        "BULLPEN_DATABASE_URL": settings.database_url,
        "BULLPEN_POLL_SECONDS": str(settings.poll_seconds),
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    return subprocess.Popen(
        [sys.executable, "-c", prelude + code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environ,
        text=True,
    )


@contextmanager
def running(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """End this process with the block, however that ends."""
    timer = threading.Timer(3 * SOON, process.kill)
    timer.start()
    try:
        yield process
    finally:
        timer.cancel()
        process.kill()
        process.communicate()


def line(process: subprocess.Popen[str]) -> str:
    """The next line that the process prints."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def tell(process: subprocess.Popen[str], text: str = "go") -> None:
    """Give the process a line."""
    assert process.stdin is not None
    process.stdin.write(f"{text}\n")
    process.stdin.flush()
