"""Files in a directory that an agent can write to: no link is followed, and no read blocks.

An agent may put links to elsewhere, pipes and endless files there. Each directory of a path is
opened relative to the one before, so that nothing can be exchanged between a check and its use.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bullpen.core.errors import InTheWay, UnknownFile
from bullpen.core.text import sanitise_text

MAX_READ_BYTES = 1 << 20
"""Bytes that are read of a file."""
MAX_ENTRIES = 10_000
"""Names that one listing examines."""
MAX_DEPTH = 16

_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class FileContent:
    """The text of a file."""

    text: str
    truncated: bool
    """Whether the file is longer."""


def read_inside(root: Path, parts: Sequence[str], most: int = MAX_READ_BYTES) -> FileContent:
    """The text of a regular file; raises UnknownFile for everything else."""
    data = read_bytes_inside(root, parts, most)
    return FileContent(
        sanitise_text(data[:most].decode("utf-8-sig", errors="replace")), len(data) > most
    )


def read_bytes_inside(root: Path, parts: Sequence[str], most: int) -> bytes:
    """The first bytes of a regular file, one more than `most` if it is longer."""
    try:
        with _directory(root, parts[:-1]) as directory:
            return _read(directory, parts[-1], most)
    except (OSError, ValueError) as error:
        raise UnknownFile(f"there is no file {_format_path(parts)}: {_reason(error)}") from None


def write_inside(root: Path, parts: Sequence[str], text: str) -> None:
    """Write a regular file atomically; an existing one keeps its mode."""
    name = parts[-1]
    unfinished = f".{name}.{secrets.token_hex(4)}"
    try:
        with _directory(root, parts[:-1]) as directory:
            mode = _mode(directory, name)
            try:
                file = os.open(unfinished, _CREATE_FILE, 0o600, dir_fd=directory)
                with os.fdopen(file, "wb") as out:
                    out.write(text.encode())
                    os.fchmod(file, mode)
                os.replace(unfinished, name, src_dir_fd=directory, dst_dir_fd=directory)
            except OSError:
                _remove(directory, unfinished)
                raise
    except (OSError, ValueError) as error:
        raise InTheWay(f"{_format_path(parts)} cannot be written: {_reason(error)}") from None


def list_inside(root: Path, parts: Sequence[str], suffix: str) -> list[str]:
    """The paths of the regular files below a directory that have this suffix."""
    try:
        with _directory(root, parts) as directory:
            return sorted(_walk(directory, "", suffix, iter(range(MAX_ENTRIES)), MAX_DEPTH))
    except (OSError, ValueError):
        return []


def directories_inside(root: Path, parts: Sequence[str], most: int) -> list[str]:
    """The names of the directories in a directory."""
    found: list[str] = []
    try:
        with _directory(root, parts) as directory, os.scandir(directory) as entries:
            for _, entry in zip(range(MAX_ENTRIES), entries, strict=False):
                if len(found) == most:
                    break
                if entry.is_dir(follow_symlinks=False):
                    found.append(entry.name)
    except (OSError, ValueError):
        return []
    return sorted(found)


@contextmanager
def _directory(root: Path, parts: Sequence[str]) -> Iterator[int]:
    """The directory, opened one part of its path after the other."""
    file = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts:
            deeper = os.open(_safe_part(part), _OPEN_DIRECTORY, dir_fd=file)
            os.close(file)
            file = deeper
        yield file
    finally:
        os.close(file)


def _read(directory: int, name: str, most: int) -> bytes:
    file = os.open(_safe_part(name), _OPEN_FILE, dir_fd=directory)
    with os.fdopen(file, "rb") as opened:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise ValueError("it is no plain file")
        return opened.read(most + 1)


def _walk(
    directory: int, below: str, suffix: str, budget: Iterator[int], depth: int
) -> Iterator[str]:
    deeper: list[str] = []
    with os.scandir(directory) as entries:
        # The budget comes second, so that the end of a directory costs none of it.
        for entry, _ in zip(entries, budget, strict=False):
            if entry.is_dir(follow_symlinks=False):
                deeper.append(entry.name)
            elif entry.name.endswith(suffix) and entry.is_file(follow_symlinks=False):
                yield below + entry.name
    for name in sorted(deeper) if depth else ():
        try:
            with _subdirectory(directory, name) as file:
                yield from _walk(file, f"{below}{name}/", suffix, budget, depth - 1)
        except OSError:
            continue  # it may not be read, or is gone


@contextmanager
def _subdirectory(directory: int, name: str) -> Iterator[int]:
    file = os.open(name, _OPEN_DIRECTORY, dir_fd=directory)
    try:
        yield file
    finally:
        os.close(file)


def _mode(directory: int, name: str) -> int:
    """The mode of an existing regular file, 0600 for a new one."""
    try:
        found = os.stat(_safe_part(name), dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return 0o600
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("what is there is no plain file")
    return stat.S_IMODE(found.st_mode)


def _remove(directory: int, name: str) -> None:
    with suppress(OSError):
        os.unlink(name, dir_fd=directory)


def _safe_part(part: str) -> str:
    if part in ("", ".", "..") or "/" in part or "\0" in part:
        raise ValueError("its path leads elsewhere")
    return part


def _format_path(parts: Sequence[str]) -> str:
    return repr(sanitise_text("/".join(parts)))[:200]


def _reason(error: OSError | ValueError) -> str:
    return error.strerror or "it cannot be read" if isinstance(error, OSError) else str(error)
