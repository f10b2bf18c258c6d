"""Copies of files with their checksums, made while the originals may change or go."""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from bullpen.core.backup.disk import create
from bullpen.core.backup.manifest import FILES, Entry, Link
from bullpen.core.files.incoming import UNFINISHED

PIECE = 1 << 20
DIRECTORY_MODE = 0o700
_UPLOADS = f"{FILES}/{UNFINISHED}"


@dataclass(slots=True)
class Copied:
    """What was copied so far."""

    files: list[Entry] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    directories: list[str] = field(default_factory=list)


def copy_tree(source: Path, backup: Path, name: str, copied: Copied) -> None:
    """Copy all that lies below a directory, under this name in the backup; links are noted.

    Sockets and the like are left out, and so is what is gone when its turn comes.
    """
    with suppress(FileNotFoundError, NotADirectoryError):
        _copy_directory(source, backup, name, copied)


def _copy_directory(source: Path, backup: Path, name: str, copied: Copied) -> None:
    entries = sorted(os.scandir(source), key=lambda entry: entry.name)
    (backup / name).mkdir(DIRECTORY_MODE)
    copied.directories.append(name)
    for entry in entries:
        path, below = Path(entry.path), f"{name}/{entry.name}"
        with suppress(FileNotFoundError):
            if entry.is_symlink():
                copied.links.append(Link(below, os.readlink(path)))  # noqa: PTH115 - as it stands
            elif entry.is_dir(follow_symlinks=False):
                # A backup that is written below what it copies would never end.
                if below != _UPLOADS and not path.samefile(backup.parent):
                    _copy_directory(path, backup, below, copied)
            elif entry.is_file(follow_symlinks=False):
                copied.files.append(copy_file(path, backup, below))


def copy_file(source: Path, directory: Path, name: str) -> Entry:
    """Copy one file; what is noted of it is what was written, whatever happens to the original."""
    digest, size = hashlib.sha256(), 0
    with source.open("rb") as original:
        found = os.fstat(original.fileno())
        executable = bool(found.st_mode & stat.S_IXUSR)
        with create(directory / name) as copy:
            while piece := original.read(PIECE):
                digest.update(piece)
                size += len(piece)
                copy.write(piece)
            copy.flush()
            os.fsync(copy.fileno())
        os.utime(directory / name, ns=(found.st_atime_ns, found.st_mtime_ns))
    return Entry(name, size, digest.hexdigest(), executable)


def entry_of(path: Path, name: str) -> Entry:
    """A file that is in the backup already."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            digest.update(piece)
        return Entry(name, file.tell(), digest.hexdigest())
