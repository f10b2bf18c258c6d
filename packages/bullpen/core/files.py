"""Files that survive a power cut, free disk space, and locks between processes."""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from bullpen.core.clock import poll_until
from bullpen.core.errors import StoreFull, UnsafeDirectory

PRIVATE_FILE_MODE = 0o600
PRIVATE_DIRECTORY_MODE = 0o700
LOCK_POLL_SECONDS = 0.02
SPACE_SECONDS = 1.0
"""How long a look at the free disk space is good for."""
RESERVE_BYTES = 200 << 20
RESERVE_DIVISOR = 20
"""The reserve is at most this fraction of a disk, so that a small one can be used."""

_spaces: dict[Path, tuple[float, int, int]] = {}
"""Of each directory: when its disk was looked at, the free bytes and all bytes."""

_locks: set[int] = set()
"""The descriptors of the locks that this process holds or waits for."""


def _close_inherited_locks() -> None:
    """In a forked child: a lock belongs to the process that took it, and ends with it."""
    while _locks:
        os.close(_locks.pop())


os.register_at_fork(after_in_child=_close_inherited_locks)


def replace_file(path: Path, data: bytes, mode: int = PRIVATE_FILE_MODE) -> None:
    """Write a file completely or not at all; once this returns, it survives a power cut."""
    # The temporary name is new and cannot be guessed, so it is never a link that was planted there.
    number, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    fsync_path(path.parent)


@contextmanager
def create_file(path: Path, mode: int = PRIVATE_FILE_MODE) -> Iterator[IO[bytes]]:
    """Write a file that must not exist yet; its bytes are on the disk when the block ends."""
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(number, "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def require_free_space(directory: Path, floor: int, size: int) -> None:
    """Refuse to store this many bytes if the disk has less than this left afterwards.

    A floor of 0 is chosen by the size of the disk.
    """
    now = time.monotonic()
    at, free, total = _spaces.get(directory, (-SPACE_SECONDS, 0, 0))
    if now - at >= SPACE_SECONDS:
        try:
            disk = os.statvfs(directory)
        except OSError:
            return  # a directory that is still to be made, or a disk that will tell why itself
        free, total = disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize
        _spaces[directory] = (now, free, total)
    reserve = floor or min(RESERVE_BYTES, total // RESERVE_DIVISOR)
    if free - size < reserve:
        raise StoreFull(
            f"the disk of {directory} has {free >> 20} MB free, {reserve >> 20} MB are reserved",
            hint="Free some disk space, or send a short text; the reserve is `free_bytes_floor`.",
        )


def fsync_path(path: Path) -> None:
    """Write a file, or the names in a directory, to the disk."""
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)


OTHERS_WRITE_MASK = 0o022


def check_only_ours(path: Path) -> None:
    """Raise UnsafeDirectory for a link, another user's file, or one that others can write to.

    What does not exist or cannot be examined is none of these.
    """
    try:
        found = path.lstat()
    except OSError:
        return
    if stat.S_ISLNK(found.st_mode):
        raise UnsafeDirectory(f"{path} is a link", hint=f"Look where it leads, then: rm {path}")
    if found.st_uid not in (os.geteuid(), 0):
        raise UnsafeDirectory(
            f"{path} belongs to another user ({found.st_uid})",
            hint="Work as that user, or name a home of your own with BULLPEN_HOME.",
        )
    if found.st_mode & OTHERS_WRITE_MASK:
        raise UnsafeDirectory(
            f"{path} can be written by others",
            hint=f"Look for what others put there, then: chmod go-w {path}",
        )


def check_home(home: Path) -> None:
    """Raise UnsafeDirectory for a home where others decide what Bullpen does or starts."""
    home = Path(os.path.realpath(home))  # the home itself may be a link of its owner's
    for each in (home, home / "plugins", *_files_in(home / "plugins")):
        check_only_ours(each)


def _files_in(directory: Path) -> list[Path]:
    """What lies in a directory, links of its owner's aside."""
    try:
        return [each for each in directory.iterdir() if not each.is_symlink()]
    except OSError:
        return []


@contextmanager
def file_lock(path: Path, seconds: float | None = None) -> Iterator[int | None]:
    """Hold the lock of a file, which is made if it is missing, or of a directory.

    Yields the descriptor; None if another process still holds the lock after this time. The system
    releases the lock of a process that ends; neither programs that it starts nor processes that it
    forks inherit it.
    """
    access = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT
    number = os.open(path, access | os.O_CLOEXEC, PRIVATE_FILE_MODE)
    _locks.add(number)
    try:
        if seconds is None:
            fcntl.flock(number, fcntl.LOCK_EX)
            yield number
        else:
            held = poll_until(lambda: _try_lock(number, fcntl.LOCK_EX), seconds, LOCK_POLL_SECONDS)
            yield number if held else None
    finally:
        if number in _locks:  # not in a forked child, where the number may be another file's
            _locks.remove(number)
            os.close(number)


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock of this file."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return not _try_lock(number, fcntl.LOCK_SH)
    finally:
        os.close(number)


def _try_lock(number: int, kind: int) -> bool:
    try:
        fcntl.flock(number, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
