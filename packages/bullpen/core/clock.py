"""Time: clocks, units, time zones, and the times and durations that people write."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Protocol, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from bullpen.core.errors import BadSchedule

if TYPE_CHECKING:
    from bullpen.core.settings import Settings

Result = TypeVar("Result")

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

MAX_WAIT_SECONDS = 5.0
"""The longest wait before the clock is read again, since it may be set or jump after a sleep."""


class Clock(Protocol):
    """Tells the time in milliseconds."""

    def now(self) -> int:
        """The present moment."""
        ...

    def monotonic(self) -> int:
        """Time that passes whatever the clock is set to; comparable within this process only."""
        ...


class SystemClock:
    """The clock of the machine."""

    def now(self) -> int:
        """The present moment, by the machine's clock."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> int:
        """Time that passes whatever the clock is set to; comparable within this process only."""
        return time.monotonic_ns() // 1_000_000


class UnchangedTimer:
    """How long this process has seen values unchanged, whatever the clocks are set to.

    Between two looks only a limited time counts: during a longer pause this process slept or was
    stopped, and possibly so was the process that would have changed the value.
    """

    def __init__(self) -> None:
        self._seen: dict[str, tuple[object, int, int]] = {}
        self._lock = threading.Lock()

    def look(self, name: str, value: object, now: int, max_pause: int) -> int:
        """Observe a value; returns how long it has been unchanged, 0 if it is new."""
        with self._lock:
            seen, unchanged, last = self._seen.get(name, (None, 0, now))
            unchanged = unchanged + min(now - last, max_pause) if seen == value else 0
            self._seen[name] = (value, unchanged, now)
            return unchanged

    def forget(self, name: str) -> None:
        """Start again with this value."""
        with self._lock:
            self._seen.pop(name, None)


def seconds_until(moment: int | None, now: int) -> float:
    """The seconds to wait for a moment; None means that it is not known yet."""
    if moment is None:
        return MAX_WAIT_SECONDS
    return min(max((moment - now) / SECOND, 0.0), MAX_WAIT_SECONDS)


def poll_until(condition: Callable[[], Result], seconds: float, interval: float) -> Result:
    """Call `condition` every `interval` seconds until it is true; returns its last result."""
    deadline = time.monotonic() + seconds
    while not (result := condition()) and time.monotonic() < deadline:
        time.sleep(interval)
    return result


def get_zone(name: str) -> ZoneInfo:
    """The zone of this name."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadSchedule(
            f"time zone {name[:60]!r} does not exist", hint="Examples: Europe/Berlin, UTC."
        ) from None


def owner_zone_name(settings: Settings) -> str:
    """The name of the owner's time zone: the setting, or the machine's."""
    if settings.time_zone:
        return settings.time_zone
    from tzlocal import get_localzone_name  # only here: the command line starts without it

    return get_localzone_name() or "UTC"


def start_of_day(now: int, here: ZoneInfo, days: int = 0) -> int:
    """The beginning of today in this zone, or of the day this many days from now."""
    local = datetime.fromtimestamp(now / SECOND, UTC).astimezone(here) + timedelta(days=days)
    begins = local.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    return int(begins.timestamp()) * SECOND


DURATION_UNITS = {"s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY}
_DURATION_PART = re.compile(r"(\d{1,9})\s*([smhdw])")
_DURATION_PATTERN = re.compile(rf"(?:{_DURATION_PART.pattern}\s*)+")


def parse_duration(text: str) -> int:
    """The milliseconds of a duration such as `30m`, `1h30m` or `2d`."""
    plain = text.strip().lower()
    if not _DURATION_PATTERN.fullmatch(plain):
        raise BadSchedule(f"invalid duration {text[:40]!r}", hint="Examples: `30m`, `1h30m`, `2d`.")
    return sum(int(number) * DURATION_UNITS[unit] for number, unit in _DURATION_PART.findall(plain))


def parse_time(text: str, zone_name: str) -> int:
    """The moment of a text such as `2026-12-24T18:00`, in this zone unless it has an offset."""
    try:
        found = datetime.fromisoformat(text.strip())
        if found.tzinfo is None:
            found = found.replace(tzinfo=get_zone(zone_name))
        return int(found.timestamp() * SECOND)
    except (ValueError, OverflowError):
        raise BadSchedule(
            f"invalid time {text[:40]!r}",
            hint="Use `2026-12-24T18:00`, or with an offset: `2026-12-24T18:00+01:00`.",
        ) from None


def format_time(at: int, zone_name: str) -> str:
    """A moment as date and time in this zone."""
    local = datetime.fromtimestamp(at / SECOND, UTC).astimezone(get_zone(zone_name))
    return local.strftime("%Y-%m-%d %H:%M %Z")


def format_interval(milliseconds: int) -> str:
    """A duration in the form that `parse_duration` reads."""
    parts = []
    rest = milliseconds // SECOND
    for unit, size in reversed(DURATION_UNITS.items()):
        count, rest = divmod(rest, size // SECOND)
        if count and unit != "w":
            parts.append(f"{count}{unit}")
        elif unit == "w":
            rest += count * size // SECOND
    return "".join(parts) or "0s"
