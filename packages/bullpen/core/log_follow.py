"""A log as it grows: each new line once, across rotations."""

from __future__ import annotations

import os
from pathlib import Path

MAX_FOLLOW_BYTES = 1 << 20
"""No more than this is read at once; the rest comes with the next look."""


class LogFollower:
    """Reads what is added to one file, from its present end on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._number: int | None = None
        self._inode = 0
        self._at = 0
        self._partial_line = b""
        self._open(at_end=True)

    def lines(self) -> list[str]:
        """The lines that are complete by now and were not given before."""
        found = self._read()
        if self._rotated():
            found += self._read()  # what came between the last look and the rotation
            self.close()
            self._open(at_end=False)
            found += self._read()
        *whole, self._partial_line = (self._partial_line + found).split(b"\n")
        return [each.decode(errors="replace") for each in whole]

    def close(self) -> None:
        """Let go of the file."""
        if self._number is not None:
            os.close(self._number)
            self._number = None

    def _open(self, *, at_end: bool) -> None:
        try:
            self._number = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:  # it is being rotated, or the service has not begun
            return
        found = os.fstat(self._number)
        self._inode = found.st_ino
        self._at = found.st_size if at_end else 0

    def _read(self) -> bytes:
        if self._number is None:
            return b""
        if os.fstat(self._number).st_size < self._at:  # somebody emptied it
            self._at = 0
        found = os.pread(self._number, MAX_FOLLOW_BYTES, self._at)
        self._at += len(found)
        return found

    def _rotated(self) -> bool:
        if self._number is None:
            return self._path.exists()
        try:
            return self._path.stat().st_ino != self._inode
        except FileNotFoundError:
            return False
