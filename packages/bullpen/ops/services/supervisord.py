"""supervisord with log handlers that tolerate a full disk.

supervisord writes its own log and those of its services. Its own handlers raise an exception when
the disk is full: it would stop reading the service's output, which blocks the service, or exit.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO

from supervisor import loggers, supervisord

from bullpen.ops.services import SUPERVISOR_VARIABLE


class LogFileHandler(loggers.RotatingFileHandler):  # type: ignore[misc] # supervisor has no types
    """A rotating log file. Records that cannot be written are dropped, and counted in the log."""

    def __init__(self, filename: str, mode: str, max_bytes: int, backups: int) -> None:
        loggers.Handler.__init__(self)
        self.baseFilename = filename
        self.mode = mode
        self.maxBytes = max_bytes
        self.backupCount = backups
        self.stream: IO[bytes] | None = None
        self._dropped = 0
        self._partial = False
        """Whether the last line in the file is incomplete."""

    def emit(self, record: loggers.LogRecord) -> None:
        """Write a record, or drop it."""
        try:
            self._write(self._bytes(record))
        except OSError:
            self._dropped += 1

    def close(self) -> None:
        """Close the file."""
        if self.stream is not None:
            with suppress(OSError):
                self.stream.close()
            self.stream = None

    def reopen(self) -> None:
        """Open the file again with the next record."""
        self.close()

    def remove(self) -> None:
        """Delete the file."""
        self.close()
        with suppress(OSError):
            Path(self.baseFilename).unlink()

    def _bytes(self, record: loggers.LogRecord) -> bytes:
        """The record as bytes; the output of a service is bytes already."""
        if isinstance(record.msg, bytes) and not record.kw.get("exc_info"):
            return record.msg
        return str(self.fmt % record.asdict()).encode(errors="backslashreplace")

    def _write(self, data: bytes) -> None:
        if self.stream is None:
            self.stream = Path(self.baseFilename).open("ab", buffering=0)  # noqa: SIM115
        if self._dropped:
            note = f"supervisord: the disk was full; lost {self._dropped} records of this log\n"
            self._append(b"\n" * self._partial + note.encode())
            self._dropped = 0
        self._append(data)
        if self.maxBytes:
            self._rotate()

    def _rotate(self) -> None:
        assert self.stream is not None
        if self.stream.tell() >= self.maxBytes:
            try:
                self.doRollover()
            finally:
                self.close()  # it has a buffer, or is closed already; the next record opens it

    def _append(self, data: bytes) -> None:
        assert self.stream is not None
        left = memoryview(data)
        while left:  # an almost full disk takes a part
            written = self.stream.write(left)
            self._partial = bytes(left[written - 1 : written]) != b"\n"
            left = left[written:]


class ErrorOutput:
    """Standard error of supervisord, a file; text is dropped while the disk is full."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text, or drop it."""
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Write the buffer, or keep it."""
        with suppress(OSError):
            self._stream.flush()


def main() -> None:
    """Run supervisord until it is stopped."""
    loggers.RotatingFileHandler = LogFileHandler
    sys.stderr = ErrorOutput(sys.stderr)
    os.environ[SUPERVISOR_VARIABLE] = str(os.getpid())
    supervisord.main()


if __name__ == "__main__":
    main()
