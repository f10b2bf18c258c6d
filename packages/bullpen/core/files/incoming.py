"""A file on its way in: written to the disk as it comes, and seen when it is whole."""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from bullpen.core.clock import DAY, SECOND
from bullpen.core.errors import StoreUnavailable
from bullpen.core.files.disk import translated_disk_errors
from bullpen.core.files.name import safe_name
from bullpen.core.ids import Ids

UNFINISHED_DIRECTORY = ".uploads"
"""Below the directory of files, so that a finished one is only given its name."""

MAX_NAME_TRIES = 100


@dataclass(frozen=True, slots=True)
class SavedUpload:
    """A file that is there."""

    name: str
    path: Path
    size: int
    sha256: str


class Upload:
    """Takes bytes; `keep` gives them a name, and `drop` forgets them."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._hash = hashlib.sha256()
        self._size = 0
        with translated_disk_errors():
            unfinished = directory / UNFINISHED_DIRECTORY
            for each in (directory, unfinished):  # of parents the mode would be any
                each.mkdir(mode=0o700, parents=True, exist_ok=True)
            _delete_stale(unfinished)
            number, name = tempfile.mkstemp(dir=unfinished)
        self._path = Path(name)
        self._file: IO[bytes] = os.fdopen(number, "wb")

    def write(self, data: bytes) -> int:
        """Take the next ones."""
        with translated_disk_errors():
            self._file.write(data)
        self._hash.update(data)
        self._size += len(data)
        return len(data)

    def seek(self, *_: int) -> int:
        """Nothing: it is read from the disk, under its name."""
        return 0

    def keep(self, ids: Ids, given: str) -> SavedUpload:
        """Give it a name of its own, which has in it what a person called it."""
        safe = safe_name(given)
        with translated_disk_errors():
            self._file.flush()
            os.fsync(self._file.fileno())
            for name in _candidate_names(ids, safe):
                path = self._directory / name
                # Unlike a renamed one, a linked file never takes the place of another.
                with suppress(FileExistsError):
                    os.link(self._path, path)
                    _sync_directory(self._directory)
                    return SavedUpload(name, path, self._size, self._hash.hexdigest())
        raise StoreUnavailable(f"{MAX_NAME_TRIES} names for a file were taken", hint="Try again.")

    def drop(self) -> None:
        """Let go of what was written under no name, or still is."""
        with suppress(OSError):  # what the disk did not take is not to be kept
            self._file.close()
        self._path.unlink(missing_ok=True)


def _candidate_names(ids: Ids, safe: str) -> Iterator[str]:
    for _ in range(MAX_NAME_TRIES):
        yield f"{ids.new('file')}_{safe}"


def _sync_directory(directory: Path) -> None:
    """The name is on the disk before anybody is told of it."""
    number = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _delete_stale(unfinished: Path) -> None:
    """Forget what processes that were killed have left behind."""
    before = time.time() - DAY / SECOND
    for path in unfinished.iterdir():
        with suppress(OSError):
            if path.stat().st_mtime < before:
                path.unlink()
