"""Traffic: how many messages people send in each hour, and the hours in which something is down.

People write in the office hours of two time zones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from random import Random
from zoneinfo import ZoneInfo

from bullpen.core.clock import DAY, HOUR, MINUTE, SECOND
from bullpen.core.message import ErrorKind
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """One cause of failures: of runs, or of deliveries on a channel."""

    name: str
    at: float
    """The part of the history that has passed when it begins."""
    minutes: int
    share: float
    """The share of runs, or of tries to deliver, that fail."""
    kind: ErrorKind = ErrorKind.RETRYABLE
    errors: tuple[str, ...] = ()
    provider: str | None = None
    """The provider whose runs fail; None is every provider."""
    agents: tuple[str, ...] = ()
    """The agents whose runs fail; empty is every agent."""
    channel: str | None = None
    """The channel whose deliveries fail; then no runs do."""
    begin: int = 0
    """Its times are known once it is planned."""
    end: int = 0

    def hits(self, agent: str, provider: str) -> bool:
        """Whether it can make runs of this agent fail."""
        return (
            self.channel is None
            and self.provider in (None, provider)
            and (not self.agents or agent in self.agents)
        )


INCIDENTS = (
    Incident(
        name="claude overloaded",
        at=0.17,
        minutes=170,
        share=0.6,
        errors=("API Error: 529 overloaded_error (request {hex})", "stream closed after {n} ms"),
        provider="claude",
    ),
    Incident(
        name="telegram unreachable",
        at=0.31,
        minutes=110,
        share=0.85,
        errors=("api.telegram.org: connection timed out",),
        channel="telegram",
    ),
    Incident(
        name="codex logged out",
        at=0.45,
        minutes=95,
        share=1.0,
        kind=ErrorKind.AUTH,
        errors=("401 Unauthorized: the access token has expired",),
        provider="codex",
    ),
    Incident(
        name="processors out of memory",
        at=0.62,
        minutes=80,
        share=0.3,
        kind=ErrorKind.CRASH,
        agents=("coder", "tester", "researcher"),
    ),
    Incident(
        name="rate limits of opencode",
        at=0.74,
        minutes=150,
        share=0.4,
        kind=ErrorKind.RATE_LIMIT,
        errors=("429 Too Many Requests: retry after {n} s",),
        provider="opencode",
    ),
    Incident(
        name="billing API changed",
        at=0.88,
        minutes=200,
        share=0.5,
        kind=ErrorKind.PERMANENT,
        errors=("tool invoices.list failed: unknown field customer_ref in response {hex}",),
        agents=("billing",),
    ),
)


def plan_incidents(random: Random, since: int, until: int) -> tuple[Incident, ...]:
    """The incidents of a history: they begin in office hours, and end before the history does."""
    found = []
    for each in INCIDENTS:
        jitter = random.uniform(-0.03, 0.03) if until - since > 10 * DAY else 0.0
        begin = next_office_hour(since + int((each.at + jitter) * (until - since)))
        begin += random.randrange(0, 90) * MINUTE
        end = begin + int(each.minutes * random.uniform(0.8, 1.2)) * MINUTE
        if end < until - HOUR:
            found.append(replace(each, begin=begin, end=end))
    return tuple(found)


def in_hour(incidents: Sequence[Incident], begin: int, end: int) -> tuple[Incident, ...]:
    """The incidents that overlap with these times."""
    return tuple(each for each in incidents if each.begin < end and begin < each.end)
