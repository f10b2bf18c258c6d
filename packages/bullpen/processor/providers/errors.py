"""Classifies failures by how a program ended and what it printed."""

from __future__ import annotations

import errno
import re
import signal
from collections.abc import Mapping

from bullpen.core.clock import SECOND
from bullpen.core.message import ErrorKind, Failure
from bullpen.core.roster.programs import install_command
from bullpen.processor.children.child import ChildExit, ExitReason

ERROR_LENGTH = 2000
MAX_WAIT_SECONDS = 8 * 24 * 3600
"""Longer than a weekly limit."""
NOT_EXECUTABLE, NOT_FOUND = 126, 127
"""Exit codes of a shell, or of `env` in the first line of a script, for a missing program."""

BY_STATUS: Mapping[int, ErrorKind] = {
    400: ErrorKind.PERMANENT,
    401: ErrorKind.AUTH,
    402: ErrorKind.QUOTA,
    403: ErrorKind.AUTH,
    404: ErrorKind.PERMANENT,
    413: ErrorKind.PERMANENT,
    422: ErrorKind.PERMANENT,
    429: ErrorKind.RATE_LIMIT,
}
"""What an HTTP status means; every other status is retryable."""

# A number alone proves nothing because any line of output may contain one.
_STATUS = r"(?:status|error|code|http)[^\w\n]{0,3}%s\b|\(%s\)"

_BY_TEXT: tuple[tuple[re.Pattern[str], ErrorKind], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), kind)
    for pattern, kind in (
        (
            r"credit balance|insufficient_quota|exceeded your current quota|quota exceeded|billing"
            r"|upgrade to (plus|pro|max)\b",
            ErrorKind.QUOTA,
        ),
        (
            r"hit your (usage )?limit|rate.?limit|too many requests|" + _STATUS % (429, 429),
            ErrorKind.RATE_LIMIT,
        ),
        (
            r"not logged in|/login|log ?in again|(invalid|incorrect|missing).{0,10}api.?key"
            r"|api.?key is missing|missing environment variable|authenticat|unauthorized"
            r"|token.{0,20}expired|" + _STATUS % (401, 401),
            ErrorKind.AUTH,
        ),
        (r"model.{0,80}(does not exist|is not supported)", ErrorKind.PERMANENT),
    )
)
_TOO_LONG = re.compile(
    r"ran out of room in the model.s context|context_length_exceeded|prompt is too long",
    re.IGNORECASE,
)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_PERIOD = r"(\d+(?:\.\d+)?)\s*(ms|[dhms])[a-z]*"
_AGAIN = re.compile(rf"try again in ((?:{_PERIOD}\s*)+)", re.IGNORECASE)
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}


def start_failure(program: str, directory: str, end: ChildExit) -> Failure:
    """The failure of a program that could not be started."""
    reason = errno.errorcode.get(end.code, str(end.code))
    if end.reason is ExitReason.NO_DIRECTORY:
        return Failure(
            kind=ErrorKind.SETUP,
            error=f"the working directory {directory} cannot be used ({reason})",
        )
    if end.code in (errno.ENOENT, errno.ENOTDIR):
        return Failure(kind=ErrorKind.SETUP, error=not_installed(program))
    if end.code in (errno.EACCES, errno.EPERM, errno.ENOEXEC):
        return Failure(kind=ErrorKind.SETUP, error=f"{program} cannot be executed ({reason})")
    return Failure(kind=ErrorKind.RETRYABLE, error=f"{program} could not be started ({reason})")


def not_installed(program: str) -> str:
    """The error for a program that is not on the PATH."""
    install = install_command(program)
    return f"{program} is not installed" + (f". Install it: {install}" if install else "")


def exit_failure(program: str, end: ChildExit, errors: str) -> Failure:
    """The failure of a run that ended without a result."""
    said = _COLOURS.sub("", errors).strip()[-ERROR_LENGTH:]
    how, kind = f"ended with status {end.code}", kind_of_text(said)
    if end.code < 0:
        how, kind = f"was killed by {_signal(-end.code)}", ErrorKind.RETRYABLE
    elif end.code == 0:
        how = "ended without an answer"
    elif end.code in (NOT_EXECUTABLE, NOT_FOUND):
        kind = ErrorKind.SETUP
    return Failure(kind=kind, error=f"{program} {how}" + (f": {said}" if said else ""))


def kind_of_text(text: str) -> ErrorKind:
    """The kind of failure that an error message describes."""
    for pattern, kind in _BY_TEXT:
        if pattern.search(text):
            return kind
    return ErrorKind.RETRYABLE


def kind_of_status(status: int, text: str) -> ErrorKind:
    """The kind of failure of an HTTP status; the message may say more."""
    if status in (400, 403, 429) and kind_of_text(text) is ErrorKind.QUOTA:
        return ErrorKind.QUOTA
    return BY_STATUS.get(status, ErrorKind.RETRYABLE)


def is_context_overflow(text: str) -> bool:
    """Whether the message says that a session is too long for the model."""
    return _TOO_LONG.search(text) is not None


def retry_after_ms(seconds: float) -> int | None:
    """The wait in milliseconds; None lets the queue decide."""
    return int(min(seconds, MAX_WAIT_SECONDS) * SECOND) if seconds > 0 else None


def retry_after_in_text(text: str) -> int | None:
    """The wait that a message asks for, as in `try again in 1m2.5s`."""
    found = _AGAIN.search(text)
    if found is None:
        return None
    periods = re.findall(_PERIOD, found[1].lower())
    return retry_after_ms(sum(float(number) * _SECONDS[unit] for number, unit in periods))


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
