"""Files of an answer: opened safely, copied out, and long text turned into a file."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from bullpen.core.files import PRIVATE_DIRECTORY_MODE, replace_file

MAX_FILES = 64
"""How many files one answer may have."""

PATH_PREVIEW_CHARS = 200

MAX_NAME_CHARS = 60

TRUNCATION_NOTE = "… ({rest} more characters: the whole text is in the file {name})"

_UNSAFE_CHARS = re.compile(r"[^A-Za-z0-9_-]+")

_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

# Opening a pipe would block.
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class RefusedFile:
    """A file that is not sent, and why."""

    path: str
    why: str

    def __str__(self) -> str:
        path = " ".join(self.path.split())
        if len(path) > PATH_PREVIEW_CHARS:
            path = f"{path[:PATH_PREVIEW_CHARS]}…"
        return f"{path} was not sent: {self.why}"


def resolve_allowed(path: str, roots: Sequence[Path]) -> Path | RefusedFile:
    """The file's real path; a relative one is looked for in the first root."""
    try:
        real = Path(os.path.realpath(roots[0] / path if roots else path))
        inside = any(real.is_relative_to(os.path.realpath(root)) for root in roots)
        if not inside:
            return RefusedFile(
                path, "it lies outside of the agent's workspace and the files directory"
            )
        mode = real.stat().st_mode
        str(real).encode()
    except FileNotFoundError:
        return RefusedFile(path, "it does not exist")
    except UnicodeEncodeError:
        return RefusedFile(path, "its real name is not UTF-8")
    except OSError as error:
        return RefusedFile(path, f"it cannot be read: {error.strerror}")
    except ValueError as error:
        return RefusedFile(path, f"it cannot be read: {error}")
    if not stat.S_ISREG(mode):
        return RefusedFile(path, "it is not a regular file")
    if not os.access(real, os.R_OK):
        return RefusedFile(path, "it may not be read")
    return real


def split_allowed(
    paths: Sequence[str], roots: Sequence[Path]
) -> tuple[tuple[str, ...], tuple[RefusedFile, ...]]:
    """The files that may leave, by their real paths and each once; and those that may not."""
    files = [resolve_allowed(path, roots) for path in paths[:MAX_FILES]]
    if len(paths) > MAX_FILES:
        files.append(RefusedFile(paths[MAX_FILES], f"{len(paths)} files are more than {MAX_FILES}"))
    allowed = dict.fromkeys(str(each) for each in files if isinstance(each, Path))
    return tuple(allowed), tuple(each for each in files if isinstance(each, RefusedFile))


def open_allowed(path: str, roots: Sequence[Path]) -> BinaryIO | RefusedFile:
    """Open the file by its real path; no part of it may have become a link in the meantime."""
    real = resolve_allowed(path, roots)
    if isinstance(real, RefusedFile):
        return real
    root = next(each for each in map(_real_path, roots) if real.is_relative_to(each))
    try:
        handle = _open_below(root, real.relative_to(root).parts)
    except OSError as error:
        return RefusedFile(path, f"it cannot be read: {error.strerror}")
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return RefusedFile(path, "it is not a regular file")
    return os.fdopen(handle, "rb")


def shorten_to_file(
    text: str, max_chars: int, directory: Path, name: str
) -> tuple[str, tuple[str, ...]]:
    """The text and no file; or, if it is too long, its beginning and the file that has it all."""
    if len(text) <= max_chars:
        return text, ()
    path = directory / _file_name(name, text)
    path.parent.mkdir(mode=PRIVATE_DIRECTORY_MODE, parents=True, exist_ok=True)
    replace_file(path, text.encode())  # before the message that names it is committed
    cut = _find_cut(text, max_chars)
    note = TRUNCATION_NOTE.format(rest=len(text) - cut, name=path.name)
    return f"{text[:cut].rstrip()}\n\n{note}", (str(path),)


def _file_name(name: str, text: str) -> str:
    """A file name that is unique for this text, by its digest.

    A client may have chosen `name`, so its characters are checked. A run whose claim was lost may
    still write: it must not overwrite the file that the next run has sent.
    """
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    return f"{_UNSAFE_CHARS.sub('_', name)[:MAX_NAME_CHARS]}_{digest}.md"


def _find_cut(text: str, max_chars: int) -> int:
    """Where to end: after a paragraph, a line or a word, if one ends in the last quarter."""
    for end in ("\n\n", "\n", " "):
        at = text.rfind(end, max_chars - max_chars // 4, max_chars + 1)
        if at > 0:
            return at
    return max_chars


def _real_path(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _open_below(root: Path, parts: Sequence[str]) -> int:
    at = os.open(root, _DIRECTORY_FLAGS)
    for number, part in enumerate(parts, 1):
        try:
            below = os.open(
                part, _FILE_FLAGS if number == len(parts) else _DIRECTORY_FLAGS, dir_fd=at
            )
        finally:
            os.close(at)
        at = below
    return at
