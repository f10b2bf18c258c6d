"""Time zones by their names, and the owner's own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from bullpen.core.clock import SECOND
from bullpen.core.errors import BadSchedule

if TYPE_CHECKING:  # settings ask for zones themselves
    from bullpen.core.settings import Settings


def get_zone(name: str) -> ZoneInfo:
    """The zone of this name."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadSchedule(
            f"there is no time zone {name[:60]!r}", hint="Give one as Europe/Berlin or UTC."
        ) from None


def owner_zone_name(settings: Settings) -> str:
    """The name of the zone in which the owner lives: as set, or the machine's own."""
    if settings.time_zone:
        return settings.time_zone
    from tzlocal import get_localzone_name  # only here: the command line starts without it

    return get_localzone_name() or "UTC"


def start_of_day(now: int, here: ZoneInfo, days: int = 0) -> int:
    """When today began, or a day so many days from now does."""
    local = datetime.fromtimestamp(now / SECOND, UTC).astimezone(here) + timedelta(days=days)
    begins = local.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    return int(begins.timestamp()) * SECOND
