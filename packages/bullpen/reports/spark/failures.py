"""Failures of Spark, of reports and of the disk, as the errors that people get."""

from __future__ import annotations

import errno

from bullpen.core.errors import BullpenError, ReportsError, SparkFailed
from bullpen.core.logs import LogFormatter
from bullpen.core.settings import Settings

MAX_CHARACTERS = 400

_FULL = {
    errno.ENOSPC: "No space left on device",
    errno.EDQUOT: "Disk quota exceeded",
    errno.EFBIG: "File too large",
}


def describe_failure(error: Exception, settings: Settings) -> BullpenError:
    """The error to report; its text shows no secret."""
    if isinstance(error, BullpenError):
        return error
    text = str(error)
    if is_full(error):
        return ReportsError(
            f"there is no space left in {settings.reports}",
            hint="Free some disk space, then run `bullpen report run` again.",
        )
    shown = LogFormatter(settings.secrets()).redact(_shorten(text) or type(error).__name__)
    return SparkFailed(shown) if _is_of_spark(error) else ReportsError(shown)


def is_full(error: Exception) -> bool:
    """Whether a disk or a quota is full, here or in a task."""
    if isinstance(error, OSError) and error.errno in _FULL:
        return True
    return any(each in str(error) for each in _FULL.values())


def is_of_parquet(error: Exception) -> bool:
    """Whether Spark could not read a file."""
    return _is_of_spark(error) and "READ_FILE" in str(error)


def _is_of_spark(error: Exception) -> bool:
    return type(error).__module__.partition(".")[0] in {"pyspark", "py4j", "grpc"}


def _shorten(text: str) -> str:
    """The line of a text that says what happened: the last one of a traceback, else the first."""
    lines = [each.strip() for each in text.splitlines() if each.strip()]
    if not lines:
        return ""
    if "Traceback (most recent call last)" in text:
        ends = [each for each in lines if _ends_traceback(each)]
        return (ends[-1] if ends else lines[-1])[:MAX_CHARACTERS]
    return lines[0][:MAX_CHARACTERS]


def _ends_traceback(line: str) -> bool:
    """Whether the line is `package.Error: text`."""
    name, colon, _ = line.partition(": ")
    return (
        bool(colon) and " " not in name and name.isascii() and not name.startswith(("File", "at"))
    )
