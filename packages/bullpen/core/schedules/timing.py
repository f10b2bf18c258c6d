"""When a schedule is due: pure functions of what it says and of a moment.

Cron expressions are read as Debian's cron does. A fixed time that the clock skips in spring comes
when the clock has jumped; one that comes twice in autumn comes the first time; an expression with
a star in its minutes or hours goes by the time that really passes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import assert_never

from cronsim import CronSim, CronSimError

from bullpen.core.clock import DAY, MINUTE, SECOND
from bullpen.core.errors import BadSchedule
from bullpen.core.schedules.when import written
from bullpen.core.time_zone import zone

LEAST = MINUTE
MOST = 3650 * DAY
FIELDS = 5
LONGEST = 200

NAMED = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}


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
                yield from self._cron_after(moment)
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

    def _cron_after(self, moment: int) -> Iterator[int]:
        assert self.cron is not None
        start = datetime.fromtimestamp(moment // SECOND, UTC).astimezone(zone(self.zone))
        last = moment
        for found in CronSim(self.cron, start):
            due = int(found.timestamp()) * SECOND
            # Two wall times that the clock skips become one; one that comes twice has been; and
            # where midnight is skipped, the library gives one that no clock shows.
            if due > last and found == found.astimezone(UTC).astimezone(found.tzinfo):
                yield due
                last = due


def cron_timing(expression: str, zone_name: str, now: int) -> Timing:
    """Whenever a clock in this zone shows what the expression says."""
    text = " ".join(expression.split())
    text = NAMED.get(text.lower(), text)
    if len(text) > LONGEST or len(text.split()) != FIELDS:
        raise BadSchedule(
            f"{expression[:60]!r} has not five fields",
            hint="Give minute, hour, day, month and weekday, as `0 9 * * 1-5`.",
        )
    timing = Timing(kind=Kind.CRON, cron=text, zone=zone(zone_name).key, anchor=now)
    try:
        comes = timing.after(now) is not None
    except CronSimError as error:
        raise BadSchedule(
            f"the cron expression {expression[:60]!r} is wrong: {str(error).lower()}",
            hint="Give minute, hour, day, month and weekday, as `0 9 * * 1-5`.",
        ) from None
    if not comes:
        raise BadSchedule(f"the cron expression {expression[:60]!r} never comes true")
    return timing


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
