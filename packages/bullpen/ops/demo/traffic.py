"""Traffic: how many messages people send in each hour, by weekday and office hours of two zones."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from zoneinfo import ZoneInfo

from bullpen.core.clock import DAY, HOUR, SECOND
from bullpen.ops.demo.company import OFFICE, PLACES

HOUR_WEIGHTS = (
    *(2, 1, 1, 1, 1, 2, 6, 18, 55, 92, 100, 88),
    *(58, 74, 96, 94, 80, 52, 26, 17, 13, 10, 7, 4),
)
"""The share of messages by local hour, of a working day."""
WEEKEND = 0.14
FRIDAY = 0.8
GROWTH = 0.25
"""How much more is sent at the end than at the beginning."""
DAILY_VARIATION = 0.12
OFFICE_HOURS = range(9, 17)


@dataclass(frozen=True, slots=True)
class TrafficHour:
    """An hour of the history, or the part of it that belongs to it."""

    begin: int
    end: int
    weights: tuple[float, ...]
    """By place."""

    @property
    def weight(self) -> float:
        """Of all places together."""
        return sum(self.weights)


def plan_traffic(random: Random, since: int, until: int) -> list[TrafficHour]:
    """The hours of the history with their weights."""
    variation = [
        max(0.5, random.gauss(1, DAILY_VARIATION)) for _ in range((until - since) // DAY + 2)
    ]
    hours = []
    begin = since
    while begin < until:
        end = min(until, begin - begin % HOUR + HOUR)
        growth = 1 + GROWTH * (begin - since) / (until - since)
        scale = growth * variation[(begin - since) // DAY] * (end - begin) / HOUR
        weights = tuple(scale * place.share * _weight(begin, place.zone) for place in PLACES)
        hours.append(TrafficHour(begin, end, weights))
        begin = end
    return hours


def _weight(moment: int, zone: ZoneInfo) -> float:
    local = _local(moment, zone)
    weekday = local.weekday()
    factor = WEEKEND if weekday >= 5 else FRIDAY if weekday == 4 else 1
    return HOUR_WEIGHTS[local.hour] * factor


def _local(moment: int, zone: ZoneInfo) -> datetime:
    return datetime.fromtimestamp(moment / SECOND, UTC).astimezone(zone)


def next_office_hour(moment: int) -> int:
    """The next moment at which the owner is at work: this one, or a full hour."""
    while True:
        local = _local(moment, OFFICE)
        if local.weekday() < 5 and local.hour in OFFICE_HOURS:
            return moment
        moment += HOUR - moment % HOUR
