"""Opens a file that may leave, so that nobody can put another one in its place meanwhile."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from bullpen.core.answers.files import Refused, allowed

_STEP = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A pipe would keep who opens it waiting.
_LAST = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def open_allowed(path: str, roots: Sequence[Path]) -> BinaryIO | Refused:
    """The file, to be read; by its real path, of which no part may have become a link since."""
    real = allowed(path, roots)
    if isinstance(real, Refused):
        return real
    root = next(each for each in map(_real, roots) if real.is_relative_to(each))
    try:
        handle = _walk(root, real.relative_to(root).parts)
    except OSError as error:
        return Refused(path, f"it cannot be read: {error.strerror}")
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return Refused(path, "it is not a regular file")
    return os.fdopen(handle, "rb")


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _walk(root: Path, parts: Sequence[str]) -> int:
    at = os.open(root, _STEP)
    for number, part in enumerate(parts, 1):
        try:
            below = os.open(part, _LAST if number == len(parts) else _STEP, dir_fd=at)
        finally:
            os.close(at)
        at = below
    return at
