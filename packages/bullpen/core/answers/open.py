"""Opens a file that may leave, so that nobody can put another one in its place meanwhile."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from bullpen.core.answers.files import RefusedFile, resolve_allowed

_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A pipe would keep who opens it waiting.
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def open_allowed(path: str, roots: Sequence[Path]) -> BinaryIO | RefusedFile:
    """The file, to be read; by its real path, of which no part may have become a link since."""
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
