"""Waits for sockets, and can be woken by any thread."""

from __future__ import annotations

import selectors
import socket
from contextlib import suppress

from bullpen.api.streams.client import Client

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class Poller:
    """The sockets of the clients, and one to be woken by. Only `wake` is for other threads."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._inner, self._outer = socket.socketpair()
        self._inner.setblocking(False)
        self._outer.setblocking(False)
        self._selector.register(self._inner, READ)
        self._interests: dict[Client, int] = {}
        self._woken = False

    def wake(self) -> None:
        """Let `wait` return."""
        if not self._woken:
            self._woken = True
            with suppress(OSError):  # it is closed
                self._outer.send(b".")

    def wait(self, seconds: float) -> list[tuple[Client, int]]:
        """Who can be read from or written to."""
        found = []
        for key, mask in self._selector.select(seconds):
            if key.data is None:
                # In this order: whoever finds it woken already is heard now.
                self._inner.recv(64)
                self._woken = False
            else:
                found.append((key.data, mask))
        return found

    def watch(self, client: Client) -> None:
        """Wait for what this client needs now."""
        wanted = (READ if client.reads else 0) | (WRITE if client.pending else 0)
        known = self._interests.get(client, 0)
        if wanted == known:
            return
        if not wanted:
            self._selector.unregister(client)
        elif not known:
            self._selector.register(client, wanted, client)
        else:
            self._selector.modify(client, wanted, client)
        self._interests[client] = wanted

    def forget(self, client: Client) -> None:
        """It is to be closed."""
        if self._interests.pop(client, 0):
            self._selector.unregister(client)

    def close(self) -> None:
        """Let go of everything."""
        self._selector.close()
        self._inner.close()
        self._outer.close()
