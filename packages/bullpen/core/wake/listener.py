"""Listeners: wait for wake-ups, and dispatch them to threads."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Protocol

ALL_TOPICS = frozenset({"*"})


class Listener(Protocol):
    """Receives the wake-ups of other processes' commits."""

    address: str | None
    """The address for the table of workers; None if it has none."""

    def wait(self, timeout: float) -> frozenset[str]:
        """Wait for wake-ups; returns their topics, or none after the timeout."""
        ...

    def interrupt(self) -> None:
        """End a wait in another thread at once."""
        ...

    def close(self) -> None:
        """Stop receiving."""
        ...


log = logging.getLogger(__name__)

LISTEN_SECONDS = 60.0


class WakeupDispatcher:
    """Calls subscribers by topic, in a thread. The topic `*` calls all of them."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._callbacks: list[tuple[str, Callable[[], None]]] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="wake-ups", daemon=True)

    def subscribe(self, topic: str, callback: Callable[[], None]) -> None:
        """Call this when a topic is woken. Only before `start`."""
        self._callbacks.append((topic, callback))

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, and close the listener."""
        self._stopping.set()
        self._listener.interrupt()
        if self._thread.ident is not None:
            self._thread.join()
        self._listener.close()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                topics = self._listener.wait(LISTEN_SECONDS)
            except Exception:
                log.exception("waiting for wake-ups failed; trying again")
                self._stopping.wait(1.0)
                topics = ALL_TOPICS
            self._dispatch(topics)

    def _dispatch(self, topics: frozenset[str]) -> None:
        for topic, callback in self._callbacks:
            if topic in topics or topics == ALL_TOPICS:
                try:
                    callback()
                except Exception:
                    log.exception("the subscriber of the topic %s failed", topic)
