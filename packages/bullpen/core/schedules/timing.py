"""When a schedule is due: pure functions of what it says and of a moment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from bullpen.core.clock import DAY, MINUTE, SECOND
from bullpen.core.errors import BadSchedule
from bullpen.core.schedules.cron import due_times, read_cron
from bullpen.core.schedules.when import written
from bullpen.core.time_zone import zone

LEAST = MINUTE
MOST = 3650 * DAY


class Kind(StrEnum):
    """What says when."""

    CRON = "cron"
    EVERY = "every"
    ONCE = "once"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """When something is due."""

    kind: Kind
    cron: str | None = None
    every: int | None = None
    at: int | None = None
    zone: str = "UTC"
    anchor: int = 0
    """Nothing is due until after it; an interval counts from it."""

    def after(self, moment: int) -> int | None:
        """The first due time after this moment, if there is one."""
        return next(self.all_after(moment), None)

    def all_after(self, moment: int) -> Iterator[int]:
        """The due times after this moment, one after the other."""
        moment = max(moment, self.anchor)
        match self.kind:
            case Kind.CRON:
                assert self.cron is not None
                yield from due_times(self.cron, zone(self.zone), moment)
            case Kind.EVERY:
                assert self.every is not None
                due = self.anchor + ((moment - self.anchor) // self.every + 1) * self.every
                while True:
                    yield due
                    due += self.every
            case Kind.ONCE:
                assert self.at is not None
                if self.at > moment:
                    yield self.at
            case _:
                assert_never(self.kind)


def cron_timing(expression: str, zone_name: str, now: int) -> Timing:
    """Whenever a clock in this zone shows what the expression says."""
    cron = read_cron(expression)
    return Timing(kind=Kind.CRON, cron=cron, zone=zone(zone_name).key, anchor=now)


def every_timing(every: int, zone_name: str, now: int) -> Timing:
    """Again and again after so many milliseconds, counted from now."""
    if not LEAST <= every <= MOST:
        raise BadSchedule(
            f"an interval of {every // SECOND} s is under a minute, or over ten years",
            hint="Give a minute or more, as `30m`.",
        )
    return Timing(kind=Kind.EVERY, every=every, zone=zone(zone_name).key, anchor=now)


def once_timing(at: int, zone_name: str, now: int) -> Timing:
    """At this moment."""
    if at <= now:
        when = written(at, zone_name) if at > 0 else "that time"
        raise BadSchedule(f"{when} is over", hint="Give a time to come, as `2030-01-31T09:00`.")
    if at > now + MOST:
        raise BadSchedule("that is more than ten years away")
    return Timing(kind=Kind.ONCE, at=at, zone=zone(zone_name).key, anchor=now)
