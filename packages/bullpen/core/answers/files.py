"""Which files may leave: those below an allowed directory, by their resolved path."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MAX_FILES = 64
"""So many files go out with one answer at the most."""

PATH_PREVIEW_CHARS = 200


@dataclass(frozen=True, slots=True)
class RefusedFile:
    """A file that does not leave, and why."""

    path: str
    why: str

    def __str__(self) -> str:
        path = " ".join(self.path.split())
        return f"{path if len(path) <= PATH_PREVIEW_CHARS else path[:PATH_PREVIEW_CHARS] + '…'} was not sent: {self.why}"


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
    found = [resolve_allowed(path, roots) for path in paths[:MAX_FILES]]
    if len(paths) > MAX_FILES:
        found.append(RefusedFile(paths[MAX_FILES], f"{len(paths)} files are more than {MAX_FILES}"))
    leave = dict.fromkeys(str(each) for each in found if isinstance(each, Path))
    return tuple(leave), tuple(each for each in found if isinstance(each, RefusedFile))
