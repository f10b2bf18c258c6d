"""Listeners: wait for wake-ups, and dispatch them to threads."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Protocol

ALL_TOPICS = frozenset({"*"})


class Listener(Protocol):
    """Hears what other processes commit."""

    address: str | None
    """Where it can be woken, for the register of workers."""

    def wait(self, timeout: float) -> frozenset[str]:
        """The topics that were rung for, or nothing after the timeout."""
        ...

    def interrupt(self) -> None:
        """Let a wait in another thread end at once."""
        ...

    def close(self) -> None:
        """Hear no more."""
        ...


log = logging.getLogger(__name__)

LISTEN_SECONDS = 60.0


class WakeupDispatcher:
    """Calls back on topics. `*` in what is heard calls everybody."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._callbacks: list[tuple[str, Callable[[], None]]] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ear", daemon=True)

    def on(self, topic: str, callback: Callable[[], None]) -> None:
        """Call this when the topic is rung for. Only before `start`."""
        self._callbacks.append((topic, callback))

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def stop(self) -> None:
        """Stop listening, and close the listener."""
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
                log.exception("listening failed and goes on")
                self._stopping.wait(1.0)
                topics = ALL_TOPICS
            self._dispatch(topics)

    def _dispatch(self, topics: frozenset[str]) -> None:
        for topic, callback in self._callbacks:
            if topic in topics or topics == ALL_TOPICS:
                try:
                    callback()
                except Exception:
                    log.exception("what was to be woken for %s failed", topic)
