"""Staging directories for backups and restored homes, and errors of their disk."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from bullpen.core.errors import BackupFailed
from bullpen.core.files import file_lock, fsync_path

STAGING_PREFIX = ".bullpen-unfinished-"

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def fsync_tree(top: Path) -> None:
    """Write the directory entries of a tree to the disk."""
    for directory, _, _ in os.walk(top):
        fsync_path(Path(directory))


@contextmanager
def staging_directory(beside: Path) -> Iterator[Path]:
    """Create a temporary directory for something incomplete, on the disk of its final path.

    It is locked until its process ends. The next backup deletes the directory of a killed process.
    """
    with ExitStack() as stack:
        with file_lock(beside):  # no other process removes the new directory before it is locked
            _remove_stale(beside)
            place = Path(tempfile.mkdtemp(prefix=STAGING_PREFIX, dir=beside))
            stack.enter_context(file_lock(place))
        try:
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)


@contextmanager
def translate_disk_errors(what: str) -> Iterator[None]:
    """Raise an error of the disk in this block as BackupFailed."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        full = error.errno in _FULL
        raise BackupFailed(
            f"{what}: {why}" + (f": {error.filename}" if error.filename else ""),
            hint="Free some space, or give another directory."
            if full
            else "Check the directory and its permissions, or give another one.",
        ) from error


def _remove_stale(beside: Path) -> None:
    for place in beside.glob(f"{STAGING_PREFIX}*"):
        with suppress(OSError), file_lock(place, 0.0) as held:
            if held is not None:
                shutil.rmtree(place, ignore_errors=True)
