"""Cuts a stream of bytes into lines, and keeps no more of it in memory than it may."""

from __future__ import annotations

import contextlib
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self


class Lines:
    """Lines of UTF-8, as they become whole; what is over `most` bytes is in a file as well.

    A single line that is longer than that is in the file alone.
    """

    def __init__(self, most: int, overflow: Path) -> None:
        self._most = most
        self._path = overflow
        self._parts: list[bytes] = []
        self._length = 0
        self._total = 0
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()

    @property
    def cut(self) -> str | None:
        """In words, that there was too much of it."""
        if self._total <= self._most:
            return None
        return f"its output was over {self._most} bytes; the rest is in {self._path}"

    def feed(self, data: bytes) -> list[str]:
        """Take some bytes; gives the lines that are whole now."""
        self._total += len(data)
        if self._total > self._most:
            self._spill(data)
        *ends, rest = data.split(b"\n")
        lines = []
        for end in ends:
            self._add(end)
            lines += self.rest()
        self._add(rest)
        return lines

    def rest(self) -> list[str]:
        """The last line, if nothing has ended it."""
        line = b"".join(self._parts).decode(errors="replace")
        self._parts = []
        self._length = 0
        return [line] if line.strip() else []

    def _add(self, part: bytes) -> None:
        self._length += len(part)
        self._parts.append(part)
        if self._length > self._most:
            self._parts.clear()

    def _spill(self, data: bytes) -> None:
        # A disk that is full is no reason to lose the run.
        with contextlib.suppress(OSError):
            if self._file is None:
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._file = self._path.open("wb", buffering=0)
                self._path.chmod(0o600)
                self._file.write(b"".join(self._parts))
            self._file.write(data)
