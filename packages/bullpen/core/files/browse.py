"""Files of people as they are looked at: listed and removed."""

from __future__ import annotations

import heapq
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bullpen.core.errors import UnknownFile
from bullpen.core.files.disk import translated_disk_errors
from bullpen.core.files.name import check_file_name

NANOSECONDS_PER_MICROSECOND, NANOSECONDS_PER_MILLISECOND = 1_000, 1_000_000
"""In nanoseconds."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file in the directory of files."""

    id: int
    """When it was stored, in microseconds: so that a list of them has an order and a cursor."""
    name: str
    size: int
    created_at: int


def list_files(directory: Path, since: int | None, limit: int) -> list[StoredFile]:
    """The newest first; or those after this number, the oldest first."""
    with translated_disk_errors():
        found = _scan_directory(directory)
        if since is None:
            return heapq.nlargest(limit, found, key=_sort_key)
        return heapq.nsmallest(limit, (each for each in found if each.id > since), key=_sort_key)


def file_path(directory: Path, name: str) -> Path:
    """Where the file of this name lies; a link is none."""
    path = directory / check_file_name(name)
    if path.is_symlink():
        raise UnknownFile(f"there is no file {name[:60]!a}")
    return path


def remove_file(directory: Path, name: str) -> None:
    """Delete the file of this name for good; messages that name it go without it."""
    path = directory / check_file_name(name)
    with translated_disk_errors():
        try:
            if not stat.S_ISREG(path.lstat().st_mode):
                raise FileNotFoundError
            path.unlink()
        except FileNotFoundError:
            raise UnknownFile(f"there is no file {name[:60]!a}") from None


def _sort_key(file: StoredFile) -> tuple[int, str]:
    return file.id, file.name


def _scan_directory(directory: Path) -> Iterator[StoredFile]:
    try:
        entries = os.scandir(directory)
    except FileNotFoundError:
        return  # nobody has sent one yet
    with entries:
        for entry in entries:
            if entry.name.startswith(".") or not entry.is_file(follow_symlinks=False):
                continue
            try:
                known = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue  # removed just now
            at = known.st_mtime_ns
            yield StoredFile(
                at // NANOSECONDS_PER_MICROSECOND,
                entry.name,
                known.st_size,
                at // NANOSECONDS_PER_MILLISECOND,
            )
