"""Cuts a stream of bytes into lines, and keeps no more of it in memory than it may."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self


class Lines:
    """Lines of UTF-8, as they become whole."""

    def __init__(self, most: int, overflow: Path) -> None:
        self._most = most
        self._path = overflow
        self._parts: list[bytes] = []
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
        if self._file is None:
            return None
        return f"its output was over {self._most} bytes; the rest is in {self._path}"

    def feed(self, data: bytes) -> list[str]:
        """Take some bytes; gives the lines that are whole now."""
        if self._file is not None:
            self._file.write(data)
            return []
        self._total += len(data)
        if self._total > self._most:
            self._overflow(data)
            return []
        if b"\n" not in data:
            self._parts.append(data)
            return []
        *lines, rest = (b"".join(self._parts) + data).split(b"\n")
        self._parts = [rest] if rest else []
        return [line.decode(errors="replace") for line in lines if line.strip()]

    def rest(self) -> list[str]:
        """A last line that nothing ends."""
        line = b"".join(self._parts).decode(errors="replace")
        self._parts = []
        return [line] if line.strip() else []

    def _overflow(self, data: bytes) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = self._path.open("wb")
        self._file.write(b"".join(self._parts) + data)
        self._parts = []
