"""Which files may leave: those below an allowed directory, by their resolved path."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MOST = 64
"""So many files go out with one answer at the most."""

SHOWN = 200


@dataclass(frozen=True, slots=True)
class Refused:
    """A file that does not leave, and why."""

    path: str
    why: str

    def __str__(self) -> str:
        path = " ".join(self.path.split())
        return f"{path if len(path) <= SHOWN else path[:SHOWN] + '…'} was not sent: {self.why}"


def allowed(path: str, roots: Sequence[Path]) -> Path | Refused:
    """The file's real path; a relative one is looked for in the first root."""
    try:
        real = Path(os.path.realpath(roots[0] / path if roots else path))
        inside = any(real.is_relative_to(os.path.realpath(root)) for root in roots)
        if not inside:
            return Refused(path, "it lies outside of the agent's workspace and the files directory")
        mode = real.stat().st_mode
        str(real).encode()
    except FileNotFoundError:
        return Refused(path, "it does not exist")
    except UnicodeEncodeError:
        return Refused(path, "its real name is not UTF-8")
    except OSError as error:
        return Refused(path, f"it cannot be read: {error.strerror}")
    except ValueError as error:
        return Refused(path, f"it cannot be read: {error}")
    if not stat.S_ISREG(mode):
        return Refused(path, "it is not a regular file")
    if not os.access(real, os.R_OK):
        return Refused(path, "it may not be read")
    return real


def sort_out(
    paths: Sequence[str], roots: Sequence[Path]
) -> tuple[tuple[str, ...], tuple[Refused, ...]]:
    """The files that may leave, by their real paths and each once; and those that may not."""
    found = [allowed(path, roots) for path in paths[:MOST]]
    if len(paths) > MOST:
        found.append(Refused(paths[MOST], f"{len(paths)} files are more than {MOST}"))
    leave = dict.fromkeys(str(each) for each in found if isinstance(each, Path))
    return tuple(leave), tuple(each for each in found if isinstance(each, Refused))
