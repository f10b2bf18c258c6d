"""The directory of a home's sockets, which nobody else may write to."""

from __future__ import annotations

import os
from pathlib import Path

from bullpen.core.errors import UnsafeDirectory
from bullpen.core.settings import Settings


def socket_directory(settings: Settings) -> Path:
    """Make it where it is missing. For a long home it is where others write, too: so look."""
    directory = settings.sockets
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = directory.stat()
    if found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise UnsafeDirectory(f"{directory} can be written by others")
    return directory
