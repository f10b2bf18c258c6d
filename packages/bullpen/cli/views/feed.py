"""A live feed of events in a view, read in a thread."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

from bullpen.core.errors import BullpenError, StoreUnavailable
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import database_file, open_store
from bullpen.core.wake.listener import Listener

POLL_SECONDS = 0.5
"""A view looks at least so often, whatever the processes do."""


@dataclass(frozen=True, slots=True)
class StoreLocation:
    """Where the database is: a file, and which one it was; or a server."""

    path: Path | None
    file: tuple[int, int] | None

    def check(self) -> None:
        """Fail if the file is gone, or is another one now: the open one is then nobody's."""
        if self.path is not None and _file(self.path) != self.file:
            raise StoreUnavailable(f"{self.path} was taken away, or replaced")


def locate_store(settings: Settings) -> StoreLocation:
    """Where the database is now; to open a file that is not there would make it."""
    path = database_file(settings)
    return StoreLocation(path, None if path is None else _file(path))


@contextmanager
def open_if_exists(settings: Settings) -> Iterator[Store]:
    """The store, if there is one."""
    locate_store(settings)
    often = replace(settings, poll_seconds=min(settings.poll_seconds, POLL_SECONDS))
    store = open_store(often)
    try:
        yield store
    finally:
        store.close()


def error_text(error: Exception) -> str:
    """What went wrong, in a sentence."""
    if isinstance(error, BullpenError):
        return f"{error}. {error.hint}" if error.hint else str(error)
    return f"{type(error).__name__}: {error}"


def _file(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError as error:
        raise StoreUnavailable(f"the database is not there: {path} ({error.strerror})") from error
    return found.st_dev, found.st_ino


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
