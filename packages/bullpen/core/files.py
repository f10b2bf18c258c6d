"""Durable files, free disk space, and locks between processes."""

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
"""The time for which the free disk space is cached."""
RESERVE_BYTES = 200 << 20
RESERVE_DIVISOR = 20
"""The reserve is at most this fraction of a disk, so that small disks can be used."""

_spaces: dict[Path, tuple[float, int, int]] = {}
"""By directory: the time of the last check, the free bytes and the total bytes of its disk."""

_locks: set[int] = set()
"""The descriptors of the locks that this process holds or waits for."""


def _close_inherited_locks() -> None:
    """Close the parent's locks in a forked child: a lock belongs to the process that took it."""
    while _locks:
        os.close(_locks.pop())


os.register_at_fork(after_in_child=_close_inherited_locks)


def replace_file(path: Path, data: bytes, mode: int = PRIVATE_FILE_MODE) -> None:
    """Write a file completely or not at all; after the return, it survives a power cut."""
    # The temporary name is new and cannot be guessed, so nobody can have placed a link there.
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
    """Write a file that must not exist yet; it is on the disk when the block ends."""
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(number, "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def require_free_space(directory: Path, floor: int, size: int) -> None:
    """Raise `StoreFull` if the disk would have less than `floor` bytes left after `size` more.

    A floor of 0 means a default that depends on the size of the disk.
    """
    now = time.monotonic()
    at, free, total = _spaces.get(directory, (-SPACE_SECONDS, 0, 0))
    if now - at >= SPACE_SECONDS:
        try:
            disk = os.statvfs(directory)
        except OSError:
            return  # the directory does not exist yet, or the write will report the problem
        free, total = disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize
        _spaces[directory] = (now, free, total)
    reserve = floor or min(RESERVE_BYTES, total // RESERVE_DIVISOR)
    if free - size < reserve:
        raise StoreFull(
            f"the disk of {directory} has {free >> 20} MB free, {reserve >> 20} MB are reserved",
            hint="Free some disk space; the reserve is the setting `free_bytes_floor`.",
        )


def fsync_path(path: Path) -> None:
    """Flush a file, or the names in a directory, to the disk."""
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)


OTHERS_WRITE_MASK = 0o022


def check_only_ours(path: Path) -> None:
    """Raise `UnsafeDirectory` for a link, another user's file, or one that others can write to.

    Missing files and files that cannot be examined pass.
    """
    try:
        found = path.lstat()
    except OSError:
        return
    if stat.S_ISLNK(found.st_mode):
        raise UnsafeDirectory(
            f"{path} is a symbolic link", hint=f"Check its target, then remove it: rm {path}"
        )
    if found.st_uid not in (os.geteuid(), 0):
        raise UnsafeDirectory(
            f"{path} belongs to another user (uid {found.st_uid})",
            hint="Run Bullpen as that user, or set BULLPEN_HOME to a directory of your own.",
        )
    if found.st_mode & OTHERS_WRITE_MASK:
        raise UnsafeDirectory(
            f"{path} is writable by other users",
            hint=f"Check what is in it, then run: chmod go-w {path}",
        )


def check_home(home: Path) -> None:
    """Raise `UnsafeDirectory` for a home whose contents other users can change."""
    home = Path(os.path.realpath(home))  # the home itself may be a link of its owner
    for each in (home, home / "plugins", *_files_in(home / "plugins")):
        check_only_ours(each)


def _files_in(directory: Path) -> list[Path]:
    """The files in a directory, except links."""
    try:
        return [each for each in directory.iterdir() if not each.is_symlink()]
    except OSError:
        return []


@contextmanager
def file_lock(path: Path, seconds: float | None = None) -> Iterator[int | None]:
    """Hold the lock of a file, which is created if it is missing, or of a directory.

    Yields the descriptor; None if another process still holds the lock after this time. The system
    releases the lock when the process ends. Its child processes do not inherit the lock.
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
        if number in _locks:  # not in a forked child, where the number may belong to another file
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
