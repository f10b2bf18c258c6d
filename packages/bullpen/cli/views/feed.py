"""Follows the store for a view, in a thread of its own: opens it, looks again and again, tells.

Woken where there are wake-ups, else by a look at a version number twice a second; what a look reads
is read in a transaction that ends with it. When the store fails it is opened anew until it is back.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from bullpen.cli.views.database import error_text, locate_store, open_if_exists
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.wake.listener import Listener

News = TypeVar("News")
UpdateReader = Callable[[Store], Iterator[News | None]]
"""Looks at a store that was just opened: first at all, then each time at what is new, if any is."""

MIN_REFRESH_SECONDS = 0.2
"""So many times a second a view changes at the most, whatever happens."""
WAIT_SECONDS = 1.0
RETRY_SECONDS = 1.0
STOP_SECONDS = 3.0


class Feed(Generic[News]):
    """One view's source."""

    def __init__(
        self,
        settings: Settings,
        looks: UpdateReader[News],
        told: Callable[[News], object],
        lost: Callable[[str], object],
    ) -> None:
        self._settings = settings
        self._looks = looks
        self._told = told
        self._lost = lost
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._listener: Listener | None = None
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wake(self) -> None:
        """Look now: this process itself has changed something."""
        with self._lock, contextlib.suppress(OSError):
            if self._listener is not None:
                self._listener.interrupt()

    def stop(self) -> None:
        """Look no more, and let go of the store."""
        self._stopping.set()
        self.wake()
        if self._thread.ident is not None:
            self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._follow()
            except Exception as error:  # a view outlives whatever happens to what it shows
                if not self._stopping.is_set():
                    self._lost(error_text(error))
                self._stopping.wait(RETRY_SECONDS)

    def _follow(self) -> None:
        where = locate_store(self._settings)
        with open_if_exists(self._settings) as store, self._listening(store) as listener:
            for news in self._looks(store):
                if news is not None:
                    self._told(news)
                if self._stopping.wait(MIN_REFRESH_SECONDS):
                    return
                listener.wait(WAIT_SECONDS)
                where.check()

    @contextlib.contextmanager
    def _listening(self, store: Store) -> Iterator[Listener]:
        listener = store.listen()
        with self._lock:
            self._listener = listener
        try:
            yield listener
        finally:
            with self._lock:
                self._listener = None
            listener.close()
