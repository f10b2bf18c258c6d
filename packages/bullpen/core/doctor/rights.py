"""Who may do what with a file, and how that is put right."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from bullpen.core.doctor.check import Fix

OTHERS_MASK = 0o077
OTHERS_WRITE_MASK = 0o022
PRIVATE_MODE, PRIVATE_DIRECTORY_MODE = 0o600, 0o700


def mode_of(path: Path) -> int | None:
    """The rights of what is there; None if nothing is, or nobody may look."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return None


def open_to_others(path: Path, rights: int = OTHERS_MASK) -> bool:
    """Whether another user has one of these rights, and can come to the file at all."""
    mode = mode_of(path)
    if mode is None or not mode & rights:
        return False
    above = [mode_of(each) or 0 for each in Path(os.path.realpath(path)).parents]
    by_all = mode & rights & 0o007 and all(each & 0o001 for each in above)
    by_group = mode & rights & 0o070 and all(each & 0o011 for each in above)
    return bool(by_all or by_group)


def make_private(paths: Iterable[Path]) -> Fix:
    """Take the rights of all but the owner away."""
    found = [(each, PRIVATE_DIRECTORY_MODE if each.is_dir() else PRIVATE_MODE) for each in paths]

    def do() -> None:
        for path, mode in found:
            with suppress(FileNotFoundError):  # some of SQLite's come and go
                path.chmod(mode)

    return Fix(steps=tuple(f"chmod {mode:o} {path}" for path, mode in found), do=do)


def format_paths(paths: Iterable[Path], home: Path, most: int = 4) -> str:
    """Some paths in words, those in the home without it."""
    names = [
        str(each.relative_to(home)) if each.is_relative_to(home) else str(each) for each in paths
    ]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
