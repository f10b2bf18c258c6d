"""Due times of cron expressions, intervals and single moments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from functools import lru_cache
from itertools import chain, islice, takewhile
from typing import assert_never
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from bullpen.core.clock import DAY, MINUTE, SECOND, format_interval, format_time, get_zone
from bullpen.core.errors import BadSchedule

# A cron expression has the meaning that it has in Debian's cron. A fixed time that the clock skips
# in spring is due right after the change; one that occurs twice in autumn is due the first time. An
# expression with a star in its minutes or hours follows elapsed time: it is due in every minute in
# which the local time matches.

CRON_FIELDS = 5
MAX_CRON_CHARS = 200
MAX_YEARS_AHEAD = 50
"""A schedule that is not due within these years is never due."""

CRON_ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}
CRON_HINT = "Use five fields: minute hour day month weekday. Example: `0 9 * * 1-5`."


def parse_cron(expression: str) -> str:
    """Check a cron expression and return its five fields."""
    text = " ".join(expression.split())
    text = CRON_ALIASES.get(text.lower(), text)
    if len(text) > MAX_CRON_CHARS or len(text.split()) != CRON_FIELDS:
        raise BadSchedule(
            f"cron expression {expression[:60]!r} does not have five fields", hint=CRON_HINT
        )
    try:
        matches = next(due_times(text, ZoneInfo("UTC"), 0), None) is not None
    except CronSimError as error:
        raise BadSchedule(
            f"invalid cron expression {expression[:60]!r}: {str(error).lower()}",
            hint=CRON_HINT,
        ) from None
    if not matches:
        raise BadSchedule(
            f"cron expression {expression[:60]!r} never matches",
            hint=CRON_HINT,
        )
    return text


DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
"""In the order of cron's numbers."""
MIN_DAY_CHARS = 3
DAY_GROUPS = {"weekdays": "1-5", "weekends": "0,6"}
_TIME_OF_DAY = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")


def daily_cron(time_of_day: str, days: str | None = None) -> str:
    """The cron expression of a time such as `09:00` on days such as `weekdays` or `mon,wed`."""
    found = _TIME_OF_DAY.fullmatch(time_of_day.strip())
    if found is None:
        raise BadSchedule(
            f"invalid time of day {time_of_day[:40]!r}", hint="Use 24 hours, for example `09:00`."
        )
    return f"{int(found[2])} {int(found[1])} * * {'*' if days is None else _cron_days(days)}"


def _cron_days(days: str) -> str:
    text = days.strip().lower()
    if text in DAY_GROUPS:
        return DAY_GROUPS[text]
    numbers = set()
    for name in text.split(","):
        day = name.strip()
        number = next((n for n, each in enumerate(DAYS) if each.startswith(day)), None)
        if number is None or len(day) < MIN_DAY_CHARS:
            raise BadSchedule(
                f"invalid days {days[:40]!r}", hint="Use weekdays, weekends, or days: `mon,wed`."
            )
        numbers.add(number)
    return ",".join(map(str, sorted(numbers)))


def due_times(cron: str, zone: ZoneInfo, moment: int) -> Iterator[int]:
    """All due times after this moment, in the local time of this zone."""
    fields = CronSim(cron, datetime.fromtimestamp(moment // SECOND, zone))
    if any(field.startswith("*") for field in cron.split()[:2]):
        return _due_by_elapsed_time(fields, zone, moment)
    return _due_by_wall_clock(fields, moment)


def _due_by_wall_clock(fields: CronSim, moment: int) -> Iterator[int]:
    last = moment
    for local in fields:
        due = int(local.timestamp()) * SECOND
        # Two times that the clock skips become one; a time that occurs twice is due once.
        if due > last:
            yield due
            last = due


def _due_by_elapsed_time(fields: CronSim, zone: ZoneInfo, moment: int) -> Iterator[int]:
    """Minute by minute; hours and days without a due time are skipped.

    CronSim loses minutes where the clock skips midnight or changes by less than an hour.
    """
    at = moment // MINUTE * MINUTE + MINUTE
    local = datetime.fromtimestamp(at // SECOND, zone)
    end = local.year + MAX_YEARS_AHEAD
    while local.year < end:
        if not _day_matches(fields, local.date()):
            midnight = datetime.combine(_next_day(fields, local.date(), end), time(), zone)
            # Where the clock skips midnight, this is the moment at which the day begins.
            at = max(at + MINUTE, int(midnight.timestamp()) * SECOND)
        elif local.hour not in fields.hours:
            at += (60 - local.minute) * MINUTE
        else:
            if local.minute in fields.minutes:
                yield at
            at += MINUTE
        local = datetime.fromtimestamp(at // SECOND, zone)


def _day_matches(fields: CronSim, day: date) -> bool:
    return day.month in fields.months and fields.match_day(day)


def _next_day(fields: CronSim, day: date, end: int) -> date:
    """The first day after this one that matches; at the latest one in the year `end`."""
    while day.year < end:
        if day.month in fields.months:
            day += timedelta(days=1)
        else:
            day = (day.replace(day=1) + timedelta(days=32)).replace(day=1)
        if _day_matches(fields, day):
            break
    return day


MIN_INTERVAL_MS = MINUTE
MAX_INTERVAL_MS = 3650 * DAY


class TimingKind(StrEnum):
    """The kind of a timing."""

    CRON = "cron"
    EVERY = "every"
    ONCE = "once"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """When a schedule is due."""

    kind: TimingKind
    cron: str | None = None
    every: int | None = None
    at: int | None = None
    zone: str = "UTC"
    anchor: int = 0
    """Nothing is due before it; an interval counts from it."""

    def after(self, moment: int) -> int | None:
        """The first due time after this moment, if there is one."""
        return next(self.due_times_after(moment), None)

    def due_times_after(self, moment: int) -> Iterator[int]:
        """The due times after this moment, in order."""
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
    """Due whenever the local time of this zone matches the cron expression."""
    cron = parse_cron(expression)
    return Timing(kind=TimingKind.CRON, cron=cron, zone=get_zone(zone_name).key, anchor=now)


def every_timing(every: int, zone_name: str, now: int) -> Timing:
    """Due at an interval in milliseconds, counted from now."""
    if not MIN_INTERVAL_MS <= every <= MAX_INTERVAL_MS:
        raise BadSchedule(
            f"interval of {every // SECOND} s is out of range",
            hint="Use one minute to ten years, for example `30m`.",
        )
    return Timing(kind=TimingKind.EVERY, every=every, zone=get_zone(zone_name).key, anchor=now)


def once_timing(at: int, zone_name: str, now: int) -> Timing:
    """Due once."""
    if at <= now:
        when = format_time(at, zone_name) if at > 0 else "that time"
        raise BadSchedule(
            f"{when} is in the past", hint="Use a future time, for example `2030-01-31T09:00`."
        )
    if at > now + MAX_INTERVAL_MS:
        raise BadSchedule(
            "time is more than ten years in the future", hint="Use a time within ten years."
        )
    return Timing(kind=TimingKind.ONCE, at=at, zone=get_zone(zone_name).key, anchor=now)


def describe_timing(timing: Timing) -> str:
    """The timing in words."""
    match timing.kind:
        case TimingKind.CRON:
            assert timing.cron is not None
            return _describe_cron(timing.cron)
        case TimingKind.EVERY:
            assert timing.every is not None
            return f"Every {format_interval(timing.every)}"
        case TimingKind.ONCE:
            assert timing.at is not None
            return f"Once, at {format_time(timing.at, timing.zone)}"
        case _:
            assert_never(timing.kind)


@lru_cache(maxsize=10_000)
def _describe_cron(cron: str) -> str:
    return CronSim(cron, datetime.now(UTC)).explain()


GRACE_MS = MINUTE
"""A due time that passed longer ago than this is missed."""

MAX_CATCH_UP = 100
"""At most this many missed due times are caught up, the newest ones."""

MAX_COUNTED = 10_000
"""Missed due times are counted up to this number."""


class MissedPolicy(StrEnum):
    """What to do about due times that passed while no scheduler was running."""

    SKIP = "skip"
    ONE = "one"
    """One run replaces all of them."""
    ALL = "all"


@dataclass(frozen=True, slots=True)
class MissedTimes:
    """Due times that are skipped."""

    first: int
    last: int
    times: int
    more: bool = False
    """Whether there were more than the number that is counted."""


@dataclass(frozen=True, slots=True)
class FirePlan:
    """Which due times fire, which are dropped, and the next due time."""

    fire: tuple[int, ...]
    dropped: MissedTimes | None
    next: int | None


def plan_fire(timing: Timing, due_at: int, now: int, missed: MissedPolicy) -> FirePlan:
    """Plan every due time from `due_at` up to now."""
    newest = _newest_due_times(timing, due_at, now)
    match missed:
        case MissedPolicy.SKIP:
            fire = [due for due in newest if due >= now - GRACE_MS]
        case MissedPolicy.ONE:
            fire = [due for due in newest if due >= now - GRACE_MS] or newest[-1:]
        case MissedPolicy.ALL:
            fire = newest
        case _:
            assert_never(missed)
    return FirePlan(tuple(fire), _missed_times(timing, due_at, now, fire), timing.after(now))


def _due_times_upto(timing: Timing, due_at: int, now: int) -> takewhile[int]:
    """This due time and those after it, up to now."""
    return takewhile(lambda due: due <= now, chain((due_at,), timing.due_times_after(due_at)))


def _newest_due_times(timing: Timing, due_at: int, now: int) -> list[int]:
    """The newest due times, searched backwards in growing steps."""
    back = DAY
    while True:
        start = timing.after(now - back) if now - back > due_at else due_at
        times = [] if start is None else list(_due_times_upto(timing, start, now))
        if start == due_at or len(times) >= MAX_CATCH_UP:
            return times[-MAX_CATCH_UP:]
        back *= 8


def _missed_times(timing: Timing, due_at: int, now: int, fire: list[int]) -> MissedTimes | None:
    end = fire[0] - 1 if fire else now
    counted = list(islice(_due_times_upto(timing, due_at, end), MAX_COUNTED + 1))
    if not counted:
        return None
    more = len(counted) > MAX_COUNTED
    last = _newest_due_times(timing, due_at, end)[-1] if more else counted[-1]
    return MissedTimes(counted[0], last, min(len(counted), MAX_COUNTED), more)
