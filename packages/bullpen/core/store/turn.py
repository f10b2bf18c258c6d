"""Whose turn it is to write, when many want to: who has waited for long says so, and goes first.

SQLite gives its lock to whoever asks at the right moment, so that one of many processes may ask
in vain for long. This is a courtesy between them and no lock: if it fails, nothing else does.
"""

from __future__ import annotations

import fcntl
import os
import random
import time
from contextlib import suppress
from pathlib import Path

RETRY_DELAY_SECONDS = (0.0002, 0.001)
PRIORITY_AFTER_SECONDS = 0.01
"""Asking sooner would make everybody stand back all the time, and halve what they get done."""


class WriteFairness:
    """A file beside the database; its locks end with the process that holds them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None
        self._has_priority = False

    def yield_to_priority(self) -> None:
        """Let another one go first, if it asks for that."""
        file = self._open_file()
        if file is None:
            return
        try:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            sleep_before_retry()
        else:
            fcntl.lockf(file, fcntl.LOCK_UN)

    def ask(self) -> None:
        """Ask to go first; of many who ask, one is heard."""
        if self._file is not None and not self._has_priority:
            with suppress(OSError):
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._has_priority = True

    def release_priority(self) -> None:
        """Ask no longer."""
        if self._has_priority and self._file is not None:
            fcntl.lockf(self._file, fcntl.LOCK_UN)
            self._has_priority = False

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
            self._has_priority = False

    def _open_file(self) -> int | None:
        if self._file is None:
            with suppress(OSError):
                self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return self._file


def sleep_before_retry() -> None:
    """Wait for as long as a transaction takes, and never as long as the others."""
    time.sleep(random.uniform(*RETRY_DELAY_SECONDS))  # noqa: S311 - not a secret
