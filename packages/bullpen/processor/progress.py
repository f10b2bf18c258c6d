"""What runs are doing, as events for whoever watches: often enough to follow, and not more.

Written by a thread of its own: who reads a program's output must never wait for the store, for
claude throws away what its pipe does not take at once.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from bullpen.core.answers.said import sanitise_text
from bullpen.core.errors import BullpenError
from bullpen.core.events.append import EventType, append_message_event
from bullpen.core.loop import Loop
from bullpen.core.message import Message
from bullpen.core.store.base import Store

log = logging.getLogger(__name__)

INTERVAL = 0.5
IDLE_SECONDS = 60.0
LENGTH = 4000


class Progress:
    """The progress of one run."""

    def __init__(self, message: Message, wake: Callable[[], None]) -> None:
        self.message = message
        self._wake = wake
        self._texts: list[str] = []
        self._lock = threading.Lock()

    def __call__(self, text: str) -> None:
        """Something was said or done."""
        with self._lock:
            self._texts.append(text)
        self._wake()

    def take(self) -> str:
        """What was not told yet: of much, the end."""
        with self._lock:
            texts, self._texts = self._texts, []
        return sanitise_text("\n".join(texts))[-LENGTH:]


class ProgressBoard:
    """The progress of all runs of this process."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._open: list[Progress] = []
        self._told = float("-inf")
        self.loop = Loop("progress", self.step)

    def open(self, message: Message) -> Progress:
        """Follow a run."""
        progress = Progress(message, self.loop.wake)
        with self._lock:
            self._open.append(progress)
        return progress

    def close(self, progress: Progress) -> None:
        """The run is over: tell the rest, before anything else is told of it."""
        with self._lock:
            self._open.remove(progress)
        self._tell([progress])

    def step(self) -> float:
        """Tell what was said since the last time, unless that was just now."""
        left = self._told + INTERVAL - self._clock()
        if left > 0:
            return left
        with self._lock:
            runs = list(self._open)
        if not self._tell(runs):
            return IDLE_SECONDS
        self._told = self._clock()
        return INTERVAL

    def _tell(self, runs: list[Progress]) -> bool:
        said = [(run.message, text) for run in runs if (text := run.take())]
        if not said:
            return False
        try:
            with self._store.write(durable=False) as tx:
                for message, text in said:
                    append_message_event(tx, EventType.AGENT_PROGRESS, message, text=text)
        except BullpenError as error:
            log.warning("the progress of %s runs is not shown: %s", len(said), error)
        return True
