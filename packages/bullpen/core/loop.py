"""A background task of a process. A process is a handful of loops."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from bullpen.core.errors import BullpenError

log = logging.getLogger(__name__)

LoopStep = Callable[[], float]
"""Does what there is to do; tells how many seconds it can wait before the next time."""


class Loop:
    """Runs a step in a thread of its own, when woken and when its time has come."""

    def __init__(self, name: str, step: LoopStep, retry_seconds: float = 1.0) -> None:
        self.name = name
        self._step = step
        self._retry = retry_seconds
        self._woken = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wake(self) -> None:
        """There may be something to do."""
        self._woken.set()

    def stop(self, timeout: float = 30.0) -> bool:
        """Take no further step; true if the present one ended within the time."""
        self._stopping.set()
        self._woken.set()
        if self._thread.ident is not None:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            # In this order, so that a stop that comes in between is not forgotten.
            self._woken.clear()
            if self._stopping.is_set():
                return
            try:
                wait = self._step()
            except BullpenError as error:
                log.warning("%s: %s (%s)", self.name, error, error.hint)
                wait = self._retry
            except Exception:
                log.exception("%s failed and goes on", self.name)
                wait = self._retry
            self._woken.wait(wait)
