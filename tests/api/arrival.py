"""What was sent to a server: whether it has come there."""

from __future__ import annotations

import socket
import time
from pathlib import Path

from tests.api.served import LIMIT


def until_it_is_read(peer: socket.socket) -> None:
    """Wait until the server has taken what was sent out of the kernel's hands."""
    own, other = peer.getsockname()[1], peer.getpeername()[1]
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            _, local, remote, _, queues = line.split()[:5]
            ours = local.endswith(f":{other:04X}") and remote.endswith(f":{own:04X}")
            if ours and queues.endswith(":00000000"):
                return
        time.sleep(0.01)
    raise AssertionError("the server does not read")
