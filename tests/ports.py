"""Ports for what a test starts: no other test has them, and the system gives them to nobody.

A port that the system chose may be anybody's again before it is used: each connection of each
other test takes one of those.
"""

from __future__ import annotations

import fcntl
import functools
import itertools
import os
import random
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

FIRST, LAST = 12_000, 32_000
"""Below those that the system chooses from."""
BLOCK = 100


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    for port in itertools.islice(_ports(os.getpid()), BLOCK):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError(f"all {BLOCK} ports of this process are taken")


@functools.cache
def _ports(pid: int) -> Iterator[int]:
    """Round and round the ports of this process."""
    return itertools.cycle(_block())


def _block() -> range:
    """Ports that are this process's own until it ends."""
    directory = Path(tempfile.gettempdir(), f"test-ports-{os.geteuid()}")
    directory.mkdir(mode=0o700, exist_ok=True)
    firsts = range(FIRST, LAST, BLOCK)
    for first in random.sample(firsts, len(firsts)):
        lock = os.open(directory / str(first), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue
        return range(first, first + BLOCK)  # the lock stays open: it ends with the process
    raise RuntimeError("other processes have all ports")
