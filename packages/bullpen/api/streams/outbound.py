"""The socket as flask-sock sees it: it reads by itself, and the hub writes.

So no frame is written into another, whoever sends it, and nobody waits for a client that is slow.
"""

from __future__ import annotations

import time

from bullpen.api.streams.client import Client
from bullpen.api.streams.hub import Hub

MOST = 16
"""So many messages of a client may wait for their turn; it is not read from before."""

WAIT_SECONDS = 0.01


class Outbound:
    """What `simple_websocket` asks of a socket."""

    def __init__(self, hub: Hub, client: Client) -> None:
        self.client = client
        self.inbox: list[object] = []
        """What was read, and is not done yet; the library's own list."""
        self._hub = hub

    def fileno(self) -> int:
        """For the library's selector."""
        return self.client.socket.fileno()

    def recv(self, size: int) -> bytes:
        """Read, unless there is more than enough to do; at the end only whether it is the end."""
        while len(self.inbox) > MOST and not self.client.over:
            time.sleep(WAIT_SECONDS)
        data = self.client.socket.recv(size)
        while data and self.client.over:
            data = self.client.socket.recv(size)
        return data

    def send(self, data: bytes) -> int:
        """Let the hub write it."""
        self._hub.give(self.client, [bytes(data)])
        return len(data)

    def close(self) -> None:
        """The library reads no more."""
        self._hub.release(self.client)
