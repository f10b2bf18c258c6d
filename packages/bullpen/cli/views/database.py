"""The store of a view: it may go away and come back, and is never made by looking at it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bullpen.core.errors import BullpenError, StoreUnavailable
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.file import database_file
from bullpen.core.store.open import open_store

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
