"""Times as people write them: how long, and at what moment."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from bullpen.core.clock import DAY, HOUR, MINUTE, SECOND
from bullpen.core.errors import BadSchedule
from bullpen.core.time_zone import get_zone

DURATION_UNITS = {"s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY}
_DURATION_PART = re.compile(r"(\d{1,9})\s*([smhdw])")
_DURATION_PATTERN = re.compile(rf"(?:{_DURATION_PART.pattern}\s*)+")


def parse_duration(text: str) -> int:
    """The milliseconds that `30m`, `1h30m` or `2d` says."""
    plain = text.strip().lower()
    if not _DURATION_PATTERN.fullmatch(plain):
        raise BadSchedule(
            f"{text[:40]!r} is no length of time", hint="Give it as `30m`, `1h30m` or `2d`."
        )
    return sum(int(number) * DURATION_UNITS[unit] for number, unit in _DURATION_PART.findall(plain))


def parse_time(text: str, zone_name: str) -> int:
    """The moment that `2026-12-24T18:00` says: by its own offset, else in this zone."""
    try:
        found = datetime.fromisoformat(text.strip())
        if found.tzinfo is None:
            found = found.replace(tzinfo=get_zone(zone_name))
        return int(found.timestamp() * SECOND)
    except (ValueError, OverflowError):
        raise BadSchedule(
            f"{text[:40]!r} is no moment",
            hint="Give it as `2026-12-24T18:00`, with `+01:00` or `Z` behind it if you like.",
        ) from None


def format_time(at: int, zone_name: str) -> str:
    """A moment as a clock in this zone shows it."""
    local = datetime.fromtimestamp(at / SECOND, UTC).astimezone(get_zone(zone_name))
    return local.strftime("%Y-%m-%d %H:%M %Z")


def format_interval(milliseconds: int) -> str:
    """A length of time as `parse_duration` reads it."""
    parts = []
    rest = milliseconds // SECOND
    for unit, size in reversed(DURATION_UNITS.items()):
        count, rest = divmod(rest, size // SECOND)
        if count and unit != "w":
            parts.append(f"{count}{unit}")
        elif unit == "w":
            rest += count * size // SECOND
    return "".join(parts) or "0s"
