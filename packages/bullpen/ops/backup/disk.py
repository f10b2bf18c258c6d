"""Files of backups on the disk: private, whole before they have their name, and gone if not."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from bullpen.core.errors import BackupFailed

FILE_MODE, EXECUTABLE_MODE, DIRECTORY_MODE = 0o600, 0o700, 0o700
STAGING_PREFIX = ".bullpen-unfinished-"

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def create_file(path: Path, mode: int = FILE_MODE) -> IO[bytes]:
    """A new file, which nobody else may read."""
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    return os.fdopen(number, "wb")


def write_file(path: Path, data: bytes) -> None:
    """A new file with these bytes, on the disk."""
    with create_file(path) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def fsync_path(path: Path) -> None:
    """See to it that a file, or the names in a directory, outlive a power cut."""
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def fsync_tree(top: Path) -> None:
    """The names in all directories below, and in this one."""
    for directory, _, _ in os.walk(top):
        fsync_path(Path(directory))


@contextmanager
def staging_directory(beside: Path) -> Iterator[Path]:
    """A place for something that is not complete, beside where it is to be; it is gone afterwards.

    One whose process was killed is taken away by the next who comes: it is locked while one lives.
    """
    with _locked(beside):
        _remove_stale(beside)
        place = Path(tempfile.mkdtemp(prefix=STAGING_PREFIX, dir=beside))
        number = _lock(place, fcntl.LOCK_EX)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
        os.close(number)


@contextmanager
def translate_disk_errors(what: str) -> Iterator[None]:
    """An error of the disk in this block, in words of ours."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        full = error.errno in _FULL
        raise BackupFailed(
            f"{what}: {why}" + (f": {error.filename}" if error.filename else ""),
            hint="Free some space, or give another place." if full else "Give another place.",
        ) from error


def _remove_stale(beside: Path) -> None:
    for place in beside.glob(f"{STAGING_PREFIX}*"):
        with suppress(OSError):
            number = _lock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(place, ignore_errors=True)
            os.close(number)


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Nobody may take away what is made here before it is locked itself."""
    number = _lock(directory, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(number)


def _lock(directory: Path, how: int) -> int:
    number = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(number, how)
    except OSError:
        os.close(number)
        raise
    return number
