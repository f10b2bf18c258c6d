"""What kind of failure it was, from how a program ended and from what it said."""

from __future__ import annotations

import errno
import re
import signal
from collections.abc import Mapping

from bullpen.core.message import ErrorKind
from bullpen.core.outcome import Failure
from bullpen.processor.children.child import End, Ending

ERROR_LENGTH = 2000

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
"""What an HTTP status means; every other one may pass by itself."""

_BY_TEXT: tuple[tuple[re.Pattern[str], ErrorKind], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), kind)
    for pattern, kind in (
        (r"credit balance|insufficient_quota|exceeded your current quota|billing", ErrorKind.QUOTA),
        (r"hit your (usage )?limit|rate.?limit|too many requests|\b429\b", ErrorKind.RATE_LIMIT),
        (
            r"not logged in|/login|log ?in again|invalid.{0,10}api.?key|incorrect api key"
            r"|missing environment variable|authenticat|unauthorized|token.{0,20}expired|\b401\b",
            ErrorKind.AUTH,
        ),
    )
)


def not_started(program: str, directory: str, code: int) -> Failure:
    """The program is not there, or not to be run, or its directory is gone."""
    if code == errno.ENOENT and program:
        return Failure(
            kind=ErrorKind.SETUP, error=f"{program} is not installed, or not on the PATH"
        )
    if code == errno.ENOTDIR:
        return Failure(kind=ErrorKind.SETUP, error=f"{directory} is not a directory")
    reason = errno.errorcode.get(code, str(code))
    if code in (errno.EACCES, errno.EPERM, errno.ENOEXEC):
        return Failure(kind=ErrorKind.SETUP, error=f"{program} may not be run ({reason})")
    return Failure(kind=ErrorKind.RETRYABLE, error=f"{program} could not be started ({reason})")


def ended_badly(program: str, end: End, errors: str) -> Failure:
    """A run that ended without saying how it went."""
    said = errors.strip()[-ERROR_LENGTH:]
    if end.ending is Ending.LOST:
        return Failure(kind=ErrorKind.RETRYABLE, error=f"{program} was lost with its keeper")
    how = f"ended with status {end.code}"
    if end.code < 0:
        how = f"was ended by {_signal(-end.code)}"
    elif end.code == 0:
        how = "ended without an answer"
    text = f"{program} {how}" + (f": {said}" if said else "")
    return Failure(kind=of_text(said), error=text)


def of_text(text: str) -> ErrorKind:
    """The kind of failure that a message in words speaks of."""
    for pattern, kind in _BY_TEXT:
        if pattern.search(text):
            return kind
    return ErrorKind.RETRYABLE


def of_status(status: int, text: str) -> ErrorKind:
    """The kind of failure that an HTTP status stands for; its words may say more."""
    if status in (400, 403, 429) and of_text(text) is ErrorKind.QUOTA:
        return ErrorKind.QUOTA
    return BY_STATUS.get(status, ErrorKind.RETRYABLE)


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
