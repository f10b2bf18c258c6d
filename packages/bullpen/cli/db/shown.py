"""How work on backups is shown: a line that moves, sizes, numbers of things."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from bullpen.core.backup.progress import ProgressCallback, ignore_progress

SIZE_UNITS = ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "kB"))


@contextmanager
def progress_line() -> Iterator[ProgressCallback]:
    """Tells on standard error how far it is, where somebody sees it; in the end it is gone."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield ignore_progress
        return
    from rich.console import Console  # only here: the command line begins without

    with Console(stderr=True).status("") as status:

        def tell(what: str, done: int, total: int) -> None:
            share = f" {100 * done // total} %" if total else ""
            status.update(f"{what}{share}")

        yield tell


def format_size(count: int) -> str:
    """So many bytes, in the largest unit of which there is one."""
    for unit, name in SIZE_UNITS:
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} bytes"


def format_count(count: int, noun: str) -> str:
    """So many of them."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
