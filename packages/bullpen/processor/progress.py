"""The progress of runs, collected while they work, and written as events by one thread."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from bullpen.core.access.outgoing import outgoing_mask
from bullpen.core.background import Loop
from bullpen.core.errors import BullpenError
from bullpen.core.events.append import append_event
from bullpen.core.events.conversation import AgentProgress
from bullpen.core.message import Message
from bullpen.core.store.base import Store
from bullpen.core.text import format_count, sanitise_text

log = logging.getLogger(__name__)

PROGRESS_SECONDS = 0.5
"""How often progress is written at most."""

IDLE_SECONDS = 60.0

MAX_PROGRESS_CHARS = 4000


class Progress:
    """The progress of one run, collected until it is written."""

    def __init__(self, message: Message, wake: Callable[[], None]) -> None:
        self.message = message
        self._wake = wake
        self._texts: list[str] = []
        self._lock = threading.Lock()

    def __call__(self, text: str) -> None:
        """Add output of the run."""
        with self._lock:
            self._texts.append(text)
        self._wake()

    def take(self) -> str:
        """Take the text that is not written yet; of a long text, the end."""
        with self._lock:
            texts, self._texts = self._texts, []
        return sanitise_text("\n".join(texts))[-MAX_PROGRESS_CHARS:]


class ProgressBoard:
    """Writes the progress of all runs as events, often enough to follow and not more.

    A separate thread writes. A thread that reads a program's output must never wait for the store,
    because claude drops output that its pipe does not accept at once.
    """

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._open: list[Progress] = []
        self._written_at = float("-inf")
        self.loop = Loop("progress", self.step)

    def open(self, message: Message) -> Progress:
        """Collect the progress of a run."""
        progress = Progress(message, self.loop.wake)
        with self._lock:
            self._open.append(progress)
        return progress

    def close(self, progress: Progress) -> None:
        """Write the rest of an ended run, before its other events."""
        with self._lock:
            self._open.remove(progress)
        self._write([progress])

    def step(self) -> float:
        """Write new progress, unless the last write was just now."""
        left = self._written_at + PROGRESS_SECONDS - self._clock()
        if left > 0:
            return left
        with self._lock:
            runs = list(self._open)
        if not self._write(runs):
            return IDLE_SECONDS
        self._written_at = self._clock()
        return PROGRESS_SECONDS

    def _write(self, runs: list[Progress]) -> bool:
        texts_of_runs = [(run.message, text) for run in runs if (text := run.take())]
        if not texts_of_runs:
            return False
        try:
            with self._store.write(durable=False) as tx:
                mask = outgoing_mask(tx)
                for message, text in texts_of_runs:
                    append_event(tx, AgentProgress(message, text=mask(text)))
        except BullpenError as error:
            log.warning(
                "cannot store the progress of %s: %s",
                format_count(len(texts_of_runs), "run"),
                error,
            )
        return True
