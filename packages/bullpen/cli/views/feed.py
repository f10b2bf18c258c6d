"""A live feed of updates for a view, read in a thread."""

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
"""The longest time between two reads of a view."""

MIN_REFRESH_SECONDS = 0.2
"""The shortest time between two updates."""
WAIT_SECONDS = 1.0
RETRY_SECONDS = 1.0
STOP_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class StoreLocation:
    """The database: a file with its device and inode, or a server."""

    path: Path | None
    file: tuple[int, int] | None

    def check(self) -> None:
        """Fail if the file was removed or replaced, because the open one gets no more writes."""
        if self.path is not None and _file(self.path) != self.file:
            raise StoreUnavailable(f"{self.path} was removed or replaced")


def locate_store(settings: Settings) -> StoreLocation:
    """The present database; fails if the file is missing, which opening would create."""
    path = database_file(settings)
    return StoreLocation(path, None if path is None else _file(path))


@contextmanager
def open_if_exists(settings: Settings) -> Iterator[Store]:
    """Open the store if it exists."""
    locate_store(settings)
    frequent = replace(settings, poll_seconds=min(settings.poll_seconds, POLL_SECONDS))
    store = open_store(frequent)
    try:
        yield store
    finally:
        store.close()


def error_text(error: Exception) -> str:
    """The error and its hint in a sentence."""
    if isinstance(error, BullpenError):
        return f"{error}. {error.hint}" if error.hint else str(error)
    return f"{type(error).__name__}: {error}"


def _file(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError as error:
        raise StoreUnavailable(f"cannot read the database {path}: {error.strerror}") from error
    return found.st_dev, found.st_ino


Update = TypeVar("Update")
UpdateReader = Callable[[Store], Iterator[Update | None]]
"""Yields everything of a store first, then each update, or None."""


class Feed(Generic[Update]):
    """The updates of one view, read in a thread; after a failure the store is opened again."""

    def __init__(
        self,
        settings: Settings,
        reader: UpdateReader[Update],
        on_update: Callable[[Update], object],
        on_lost: Callable[[str], object],
    ) -> None:
        self._settings = settings
        self._reader = reader
        self._on_update = on_update
        self._on_lost = on_lost
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._listener: Listener | None = None
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wake(self) -> None:
        """Read now, after a change by this process."""
        with self._lock, contextlib.suppress(OSError):
            if self._listener is not None:
                self._listener.interrupt()

    def stop(self) -> None:
        """Stop the thread, and close the store."""
        self._stopping.set()
        self.wake()
        if self._thread.ident is not None:
            self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._follow()
            except Exception as error:  # a view survives every failure of the store
                if not self._stopping.is_set():
                    self._on_lost(error_text(error))
                self._stopping.wait(RETRY_SECONDS)

    def _follow(self) -> None:
        location = locate_store(self._settings)
        with open_if_exists(self._settings) as store, self._listening(store) as listener:
            for update in self._reader(store):
                if update is not None:
                    self._on_update(update)
                if self._stopping.wait(MIN_REFRESH_SECONDS):
                    return
                listener.wait(WAIT_SECONDS)
                location.check()

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
