"""The end of a service's log: read from the end, whatever its length."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from bullpen.core.errors import UnknownService
from bullpen.core.logs import LogFormatter
from bullpen.core.settings import Settings

BLOCK_BYTES = 64 << 10
MAX_TAIL_BYTES = 1 << 20
"""No more than this is read, however long the lines are."""

LOG_SUFFIX = ".log"


def logged_services(settings: Settings) -> list[str]:
    """The services that have a log."""
    return sorted(path.stem for path in settings.logs.glob(f"*{LOG_SUFFIX}") if path.is_file())


def read_log_tail(
    settings: Settings, service: str, count: int, secrets: Iterable[str] = ()
) -> list[str]:
    """The last lines of a service's log, the oldest first, without what nobody is to read."""
    if service not in logged_services(settings):
        raise UnknownService(f"there is no log of a service {service[:40]!r}")
    hide = LogFormatter(secrets).redact
    path = settings.logs / f"{service}{LOG_SUFFIX}"
    try:
        return [hide(line) for line in last_lines(path, count)]
    except FileNotFoundError:  # it is being rotated
        return []


def last_lines(path: Path, count: int) -> list[str]:
    """The last lines of a file; one that begins further back than is read is left out."""
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
