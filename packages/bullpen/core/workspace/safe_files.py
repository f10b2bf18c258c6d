"""Files in a directory that an agent can write to: no link is followed, and no read blocks.

An agent may put links to elsewhere, hard links, pipes and endless files there. Everything that is
read for a prompt or sent to a person is opened by `open_inside`: each directory of a path is opened
relative to the one before, so that nothing can be exchanged between a check and its use.

What root writes or makes there belongs to the owner of its directory: an agent that runs as another
unix user keeps the use of its files.
"""

from __future__ import annotations

import io
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from bullpen.core.errors import InTheWay, UnknownFile
from bullpen.core.text import sanitise_text

MAX_READ_BYTES = 1 << 20
"""Bytes that are read of a file."""
MAX_ENTRIES = 10_000
"""The most names that one listing examines."""
MAX_DEPTH = 16
MAX_GIVEN_DEPTH = 100
OPEN_TRIES = 10
"""How often a file is opened again because its name was given to another one."""

_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A directory on the way to the last one may be searchable without being readable.
_PASS_DIRECTORY = (
    os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    if sys.platform == "linux"
    else _OPEN_DIRECTORY
)
_OPEN_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Root:
    """A directory from which files may be read; links are followed only in its anchor."""

    anchor: Path
    parts: tuple[str, ...] = ()
    stored: bool = False
    """Whether it is the directory of stored files, which is flat and has rights for each file."""

    @classmethod
    def resolved(cls, path: Path) -> Root:
        """The directory of this path with links resolved; it is opened without following links."""
        real = Path(os.path.realpath(path))
        return cls(Path(real.anchor), real.parts[1:])

    @property
    def path(self) -> Path:
        """Its path, with the links of the anchor resolved."""
        return Path(os.path.realpath(self.anchor)).joinpath(*self.parts)


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
        with open_inside(root, parts) as file:
            return file.read(most + 1)
    except (OSError, ValueError) as error:
        raise UnknownFile(f"cannot read the file {_format_path(parts)}: {_reason(error)}") from None


def open_inside(root: Path, parts: Sequence[str]) -> BinaryIO:
    """Open a regular file without other names; raises OSError or ValueError otherwise.

    It may be replaced by a newer one at any time. That its name is its only one is checked by one
    look at the name, after it was opened: a hard link that is removed meanwhile gains nothing.
    """
    name = _safe_part(parts[-1] if parts else "")
    with _directory(root, parts[:-1]) as directory:
        for _ in range(OPEN_TRIES):
            file = os.open(name, _OPEN_FILE, dir_fd=directory)
            try:
                if _is_only_name(file, directory, name):
                    return os.fdopen(file, "rb")
            except BaseException:
                os.close(file)
                raise
            os.close(file)
    raise ValueError("it is replaced too often")


def _is_only_name(file: int, directory: int, name: str) -> bool:
    """Raise an error unless the name is still the only one of this regular file."""
    opened = os.fstat(file)
    if not stat.S_ISREG(opened.st_mode):
        raise ValueError("it is not a regular file")
    named = os.stat(name, dir_fd=directory, follow_symlinks=False)
    if not os.path.samestat(opened, named):
        return False
    if named.st_nlink > 1:
        raise ValueError("it has a hard link")
    return True


def write_inside(
    root: Path, parts: Sequence[str], text: str, mode: int = 0o600, *, template: bool = False
) -> None:
    """Write a regular file completely or not at all; an existing one keeps its mode.

    A template's missing directories are made, it takes the place of a link or a pipe, and a text
    that was read from bytes which were not UTF-8 is written as those bytes.
    """
    try:
        data = text.encode(errors="surrogateescape" if template else "strict")
    except ValueError as error:
        raise InTheWay(f"{_format_path(parts)} cannot be written: {error}") from None
    copy_inside(root, parts, io.BytesIO(data), mode, template=template)


def copy_inside(
    root: Path, parts: Sequence[str], source: BinaryIO, mode: int = 0o600, *, template: bool = False
) -> None:
    """Write a regular file as `write_inside` does, with what can be read from another one."""
    name = parts[-1]
    unfinished = f".{name}.{secrets.token_hex(4)}"
    try:
        with _directory(root, parts[:-1], create=template) as directory:
            mode = _mode(directory, name, mode, replace=template)
            try:
                file = os.open(unfinished, _CREATE_FILE, 0o600, dir_fd=directory)
                with os.fdopen(file, "wb") as out:
                    shutil.copyfileobj(source, out)
                    out.flush()
                    os.fchmod(file, mode)
                    _take_owner(file, directory)
                    os.fsync(file)
                os.replace(unfinished, name, src_dir_fd=directory, dst_dir_fd=directory)
            except OSError:
                _remove(directory, unfinished)
                raise
    except (OSError, ValueError) as error:
        raise InTheWay(f"{_format_path(parts)} cannot be written: {_reason(error)}") from None


def make_directory_inside(root: Path, parts: Sequence[str]) -> None:
    """Create a directory with its parents, unless they exist."""
    with _directory(root, parts, create=True):
        pass


def link_inside(root: Path, parts: Sequence[str], target: Path) -> None:
    """Create a link, unless the name exists."""
    with _directory(root, parts[:-1]) as directory, suppress(FileExistsError):
        os.symlink(target, _safe_part(parts[-1]), dir_fd=directory)


def remove_inside(root: Path, parts: Sequence[str]) -> None:
    """Remove a file, if it exists."""
    with suppress(OSError, ValueError), _directory(root, parts[:-1]) as directory:
        os.unlink(_safe_part(parts[-1]), dir_fd=directory)


def give_inside(root: Path, parts: Sequence[str], uid: int, gid: int) -> None:
    """Give a directory with all that is below it to another user, and to that one alone.

    Only what belongs to its owner until now, and has no other name, is given.
    The directory itself comes last, so that one that was given in part is given again.
    """
    with _directory(root, parts) as directory:
        owner = os.fstat(directory).st_uid
        os.fchmod(directory, 0o700)
        _give(directory, owner, uid, gid, MAX_GIVEN_DEPTH)


def _give(directory: int, owner: int, uid: int, gid: int, depth: int) -> None:
    if not depth:
        raise ValueError("its directories are nested too deeply")
    for name in os.listdir(directory):
        with suppress(FileNotFoundError):
            kind = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
            if stat.S_ISDIR(kind):
                with _subdirectory(directory, name) as below:
                    _give(below, owner, uid, gid, depth - 1)
            elif stat.S_ISREG(kind):
                _give_file(directory, name, owner, uid, gid)
    if os.fstat(directory).st_uid == owner:
        os.fchown(directory, uid, gid)


def _give_file(directory: int, name: str, owner: int, uid: int, gid: int) -> None:
    file = os.open(name, _OPEN_FILE, dir_fd=directory)
    try:
        opened = os.fstat(file)
        if stat.S_ISREG(opened.st_mode) and opened.st_nlink == 1 and opened.st_uid == owner:
            os.fchown(file, uid, gid)
    finally:
        os.close(file)


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
def _directory(root: Path, parts: Sequence[str], *, create: bool = False) -> Iterator[int]:
    """The directory, opened one part of its path after the other."""
    file = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for number, part in enumerate(parts, 1):
            if create:
                _make_directory(file, _safe_part(part))
            flags = _OPEN_DIRECTORY if number == len(parts) else _PASS_DIRECTORY
            deeper = os.open(_safe_part(part), flags, dir_fd=file)
            os.close(file)
            file = deeper
        yield file
    finally:
        os.close(file)


def _make_directory(directory: int, name: str) -> None:
    """Create a directory, unless the name exists."""
    try:
        os.mkdir(name, 0o700, dir_fd=directory)
    except FileExistsError:
        return
    with _subdirectory(directory, name) as made:
        _take_owner(made, directory)


def _take_owner(file: int, directory: int) -> None:
    """Let root's file belong to the owner of its directory."""
    if os.geteuid() == 0:
        owner = os.fstat(directory)
        os.fchown(file, owner.st_uid, owner.st_gid)


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
            continue  # it cannot be read, or was removed


@contextmanager
def _subdirectory(directory: int, name: str) -> Iterator[int]:
    file = os.open(name, _OPEN_DIRECTORY, dir_fd=directory)
    try:
        yield file
    finally:
        os.close(file)


def _mode(directory: int, name: str, default: int, *, replace: bool) -> int:
    """The mode of an existing regular file; the default for a new one."""
    try:
        found = os.stat(_safe_part(name), dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return default
    if stat.S_ISREG(found.st_mode):
        return stat.S_IMODE(found.st_mode)
    if not replace:
        raise ValueError("it is not a regular file")
    return default


def _remove(directory: int, name: str) -> None:
    with suppress(OSError):
        os.unlink(name, dir_fd=directory)


def _safe_part(part: str) -> str:
    if part in ("", ".", "..") or "/" in part or "\0" in part:
        raise ValueError("its path contains a link")
    return part


def _format_path(parts: Sequence[str]) -> str:
    return repr(sanitise_text("/".join(parts)))[:200]


def _reason(error: OSError | ValueError) -> str:
    return error.strerror or "it cannot be read" if isinstance(error, OSError) else str(error)
