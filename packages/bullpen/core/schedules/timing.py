"""When a schedule is due: pure functions of what it says and of a moment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from bullpen.core.clock import DAY, MINUTE, SECOND
from bullpen.core.errors import BadSchedule
from bullpen.core.schedules.cron import due_times, parse_cron
from bullpen.core.schedules.when import format_time
from bullpen.core.time_zone import get_zone

MIN_INTERVAL_MS = MINUTE
MAX_INTERVAL_MS = 3650 * DAY


class TimingKind(StrEnum):
    """What says when."""

    CRON = "cron"
    EVERY = "every"
    ONCE = "once"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """When something is due."""

    kind: TimingKind
    cron: str | None = None
    every: int | None = None
    at: int | None = None
    zone: str = "UTC"
    anchor: int = 0
    """Nothing is due until after it; an interval counts from it."""

    def after(self, moment: int) -> int | None:
        """The first due time after this moment, if there is one."""
        return next(self.due_times_after(moment), None)

    def due_times_after(self, moment: int) -> Iterator[int]:
        """The due times after this moment, one after the other."""
        moment = max(moment, self.anchor)
        match self.kind:
            case TimingKind.CRON:
                assert self.cron is not None
                yield from due_times(self.cron, get_zone(self.zone), moment)
            case TimingKind.EVERY:
                assert self.every is not None
                due = self.anchor + ((moment - self.anchor) // self.every + 1) * self.every
                while True:
                    yield due
                    due += self.every
            case TimingKind.ONCE:
                assert self.at is not None
                if self.at > moment:
                    yield self.at
            case _:
                assert_never(self.kind)


def cron_timing(expression: str, zone_name: str, now: int) -> Timing:
    """Whenever a clock in this zone shows what the expression says."""
    cron = parse_cron(expression)
    return Timing(kind=TimingKind.CRON, cron=cron, zone=get_zone(zone_name).key, anchor=now)


def every_timing(every: int, zone_name: str, now: int) -> Timing:
    """Again and again after so many milliseconds, counted from now."""
    if not MIN_INTERVAL_MS <= every <= MAX_INTERVAL_MS:
        raise BadSchedule(
            f"an interval of {every // SECOND} s is under a minute, or over ten years",
            hint="Give a minute or more, as `30m`.",
        )
    return Timing(kind=TimingKind.EVERY, every=every, zone=get_zone(zone_name).key, anchor=now)


def once_timing(at: int, zone_name: str, now: int) -> Timing:
    """At this moment."""
    if at <= now:
        when = format_time(at, zone_name) if at > 0 else "that time"
        raise BadSchedule(f"{when} is over", hint="Give a time to come, as `2030-01-31T09:00`.")
    if at > now + MAX_INTERVAL_MS:
        raise BadSchedule("that is more than ten years away")
    return Timing(kind=TimingKind.ONCE, at=at, zone=get_zone(zone_name).key, anchor=now)
