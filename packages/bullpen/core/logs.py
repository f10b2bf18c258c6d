"""Logs of the services: formatting without secrets, reading the end of a file, following it."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterable
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

from bullpen.core.errors import UnknownService
from bullpen.core.settings import LogFormat, Settings
from bullpen.core.text import HIDDEN, SecretMask, escape_controls

MAX_FOLLOW_BYTES = 1 << 20
"""The most bytes of one read; the next read returns the rest."""
BLOCK_BYTES = 64 << 10
MAX_TAIL_BYTES = 1 << 20
"""The most bytes that are read, regardless of the length of lines."""

LOG_SUFFIX = ".log"

LEVEL_NAMES = {logging.WARNING: "WARN", logging.CRITICAL: "ERROR"}
"""Levels with another name in text lines, by which TinyAGI's clients colour them."""

REQUEST_ID: ContextVar[str] = ContextVar("request", default="")
"""The id of the current request, which is added to each of its log lines."""

_SECRETS = re.compile(r"\bbp_[A-Za-z0-9_-]{8,}|(?i:(?<=bearer )\S+)")


class LogFormatter(logging.Formatter):
    """The base of both formats: the parts of an entry, with secrets masked."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__()
        self._mask = SecretMask(secrets)

    def redact(self, text: str) -> str:
        """The text with its secrets masked."""
        return self._mask(_SECRETS.sub(HIDDEN, text))

    def parts(self, record: logging.LogRecord) -> dict[str, object]:
        """The entry as names and values."""
        at = datetime.fromtimestamp(record.created, UTC)
        fields = getattr(record, "fields", {})
        found: dict[str, object] = {
            "at": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "text": record.getMessage(),
            **(fields if isinstance(fields, dict) else {}),
        }
        if request := REQUEST_ID.get():
            found["request"] = request
        if record.exc_info:
            found["traceback"] = self.formatException(record.exc_info)
        return found


class JsonFormatter(LogFormatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The entry as JSON."""
        return self.redact(json.dumps(self.parts(record), default=str))


class TextFormatter(LogFormatter):
    """The message, then its fields as name=value; a traceback follows."""

    fixed: ClassVar = ("at", "level", "logger", "text", "traceback")

    def format(self, record: logging.LogRecord) -> str:
        """The entry as one line of text, with line breaks escaped."""
        parts = self.parts(record)
        more = "".join(f" {name}={each}" for name, each in parts.items() if name not in self.fixed)
        text = escape_controls(f"{parts['text']}{more}").replace("\n", "\\n")
        level = LEVEL_NAMES.get(record.levelno, record.levelname)
        line = f"{parts['at']} [{level}] {record.name}: {text}"
        if "traceback" in parts:
            line += "\n" + escape_controls(str(parts["traceback"]))
        return self.redact(line)


def configure_logging(settings: Settings) -> None:
    """Log to standard error in the format of the settings."""
    kind = JsonFormatter if settings.log_format is LogFormat.JSON else TextFormatter
    handler = logging.StreamHandler()
    handler.setFormatter(kind(settings.secrets()))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)


def logged_services(settings: Settings) -> list[str]:
    """The services that have a log."""
    return sorted(path.stem for path in settings.logs.glob(f"*{LOG_SUFFIX}") if path.is_file())


def read_log_tail(
    settings: Settings, service: str, count: int, secrets: Iterable[str] = ()
) -> list[str]:
    """The last lines of a service's log, oldest first, with secrets masked."""
    if service not in logged_services(settings):
        raise UnknownService(f"no log of service {service[:40]!r} exists")
    hide = LogFormatter(secrets).redact
    path = settings.logs / f"{service}{LOG_SUFFIX}"
    try:
        return [hide(line) for line in last_lines(path, count)]
    except FileNotFoundError:  # it is being rotated
        return []


def last_lines(path: Path, count: int) -> list[str]:
    """The last lines of a file; a line that begins before the bytes read is omitted."""
    found = b""
    with path.open("rb") as file:
        at = file.seek(0, os.SEEK_END)
        while at > 0 and found.count(b"\n") <= count and len(found) < MAX_TAIL_BYTES:
            size = min(BLOCK_BYTES, at)
            at = file.seek(at - size)
            found = file.read(size) + found
    lines = found.decode(errors="replace").split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return (lines[1:] if at > 0 else lines)[-count:]


class LogFollower:
    """Reads the lines that are added to a file, across its rotation."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._number: int | None = None
        self._inode = 0
        self._at = 0
        self._partial_line = b""
        self._open(at_end=True)

    def lines(self) -> list[str]:
        """The complete lines since the last call."""
        found = self._read()
        if self._rotated():
            found += self._read()  # lines between the last read and the rotation
            self.close()
            self._open(at_end=False)
            found += self._read()
        *whole, self._partial_line = (self._partial_line + found).split(b"\n")
        return [each.decode(errors="replace") for each in whole]

    def close(self) -> None:
        """Close the file."""
        if self._number is not None:
            os.close(self._number)
            self._number = None

    def _open(self, *, at_end: bool) -> None:
        try:
            self._number = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:  # it is being rotated, or the service has not started
            return
        found = os.fstat(self._number)
        self._inode = found.st_ino
        self._at = found.st_size if at_end else 0

    def _read(self) -> bytes:
        if self._number is None:
            return b""
        if os.fstat(self._number).st_size < self._at:  # it was truncated
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
