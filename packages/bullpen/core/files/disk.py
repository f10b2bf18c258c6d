"""What a disk could not do, in Bullpen's words."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from bullpen.core.errors import StoreError, StoreFull, StoreReadOnly, StoreUnavailable

_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_DENIED_ERRNOS = (errno.EACCES, errno.EPERM, errno.EROFS)


@contextmanager
def translated_disk_errors() -> Iterator[None]:
    """An error of the disk in this block is one that is told to who asked."""
    try:
        yield
    except OSError as error:
        raise _translate(error) from error


def _translate(error: OSError) -> StoreError:
    why = error.strerror or type(error).__name__
    if error.errno in _FULL_ERRNOS:
        return StoreFull(f"the file has no room: {why}")
    if error.errno in _DENIED_ERRNOS:
        return StoreReadOnly(
            f"the directory of files cannot be written: {why}",
            hint="Check the owner and rights of the directory `files` of the home.",
        )
    return StoreUnavailable(
        f"the directory of files cannot be used: {why}",
        hint="Look at the directory `files` of the home, and at its disk.",
    )
