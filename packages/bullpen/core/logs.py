"""How the services log: a line an entry, as text or JSON, and never a secret in it."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import ClassVar

from bullpen.core.settings import LogFormat, Settings

REQUEST_ID: ContextVar[str] = ContextVar("request", default="")
"""The id of the request that is being served, on every line that it causes."""

HIDDEN = "[hidden]"
_SECRETS = re.compile(r"\bbp_[A-Za-z0-9_-]{8,}|(?i:(?<=bearer )\S+)")
_BREAKS = {ord("\n"): "\\n", ord("\r"): "\\r", ord("\x1b"): "\\x1b"}
MIN_SECRET_CHARS = 6
"""Shorter texts are no secrets, and would be hidden in the middle of words."""


class LogFormatter(logging.Formatter):
    """What both forms share: the entry's parts, with the secrets taken out."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__()
        known = sorted(
            {each for each in secrets if len(each) >= MIN_SECRET_CHARS}, key=len, reverse=True
        )
        self._known = re.compile("|".join(re.escape(each) for each in known)) if known else None

    def redact(self, text: str) -> str:
        """The text without what nobody is to read."""
        text = _SECRETS.sub(HIDDEN, text)
        return text if self._known is None else self._known.sub(HIDDEN, text)

    def parts(self, record: logging.LogRecord) -> dict[str, object]:
        """The entry, as names and values."""
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
    """Words first, then what goes with them as name=value; a traceback below."""

    fixed: ClassVar = ("at", "level", "logger", "text", "traceback")

    def format(self, record: logging.LogRecord) -> str:
        """The entry as text; what somebody sent breaks no line."""
        parts = self.parts(record)
        more = "".join(f" {name}={each}" for name, each in parts.items() if name not in self.fixed)
        text = f"{parts['text']}{more}".translate(_BREAKS)
        line = f"{parts['at']} {record.levelname:<7} {record.name}: {text}"
        if "traceback" in parts:
            line += f"\n{parts['traceback']}"
        return self.redact(line)


def configure_logging(settings: Settings) -> None:
    """Log to standard error, as the settings say."""
    kind = JsonFormatter if settings.log_format is LogFormat.JSON else TextFormatter
    handler = logging.StreamHandler()
    handler.setFormatter(kind(settings.secrets()))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
