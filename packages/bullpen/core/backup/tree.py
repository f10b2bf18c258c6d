"""Copies of files with their checksums, made while the originals may change or go."""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from bullpen.core.backup.disk import create_file
from bullpen.core.backup.manifest import FILES, FileEntry, LinkEntry
from bullpen.core.files.incoming import UNFINISHED_DIRECTORY

COPY_CHUNK_BYTES = 1 << 20
TREE_DIRECTORY_MODE = 0o700
_UPLOADS = f"{FILES}/{UNFINISHED_DIRECTORY}"


@dataclass(slots=True)
class CopiedTree:
    """What was copied so far."""

    files: list[FileEntry] = field(default_factory=list)
    links: list[LinkEntry] = field(default_factory=list)
    directories: list[str] = field(default_factory=list)


def copy_tree(source: Path, backup: Path, name: str, copied: CopiedTree) -> None:
    """Copy all that lies below a directory, under this name in the backup; links are noted.

    Sockets and the like are left out, and so is what is gone when its turn comes.
    """
    with suppress(FileNotFoundError, NotADirectoryError):
        _copy_directory(source, backup, name, copied)


def _copy_directory(source: Path, backup: Path, name: str, copied: CopiedTree) -> None:
    entries = sorted(os.scandir(source), key=lambda entry: entry.name)
    (backup / name).mkdir(TREE_DIRECTORY_MODE)
    copied.directories.append(name)
    for entry in entries:
        path, below = Path(entry.path), f"{name}/{entry.name}"
        with suppress(FileNotFoundError):
            if entry.is_symlink():
                copied.links.append(LinkEntry(below, os.readlink(path)))  # noqa: PTH115 - as it stands
            elif entry.is_dir(follow_symlinks=False):
                # A backup that is written below what it copies would never end.
                if below != _UPLOADS and not path.samefile(backup.parent):
                    _copy_directory(path, backup, below, copied)
            elif entry.is_file(follow_symlinks=False):
                copied.files.append(copy_file(path, backup, below))


def copy_file(source: Path, directory: Path, name: str) -> FileEntry:
    """Copy one file; what is noted of it is what was written, whatever happens to the original."""
    digest, size = hashlib.sha256(), 0
    with source.open("rb") as original:
        found = os.fstat(original.fileno())
        executable = bool(found.st_mode & stat.S_IXUSR)
        with create_file(directory / name) as copy:
            while piece := original.read(COPY_CHUNK_BYTES):
                digest.update(piece)
                size += len(piece)
                copy.write(piece)
            copy.flush()
            os.fsync(copy.fileno())
        os.utime(directory / name, ns=(found.st_atime_ns, found.st_mtime_ns))
    return FileEntry(name, size, digest.hexdigest(), executable)


def hash_file(path: Path, name: str) -> FileEntry:
    """A file that is in the backup already."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(COPY_CHUNK_BYTES):
            digest.update(piece)
        return FileEntry(name, file.tell(), digest.hexdigest())
