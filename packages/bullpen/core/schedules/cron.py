"""When a cron expression is due, which is read as Debian's cron does.

A fixed time that the clock skips in spring comes when the clock has jumped; one that comes twice in
autumn comes the first time. An expression with a star in its minutes or hours goes by the time that
really passes: it is due in each minute in which a clock shows what it says.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from bullpen.core.clock import MINUTE, SECOND
from bullpen.core.errors import BadSchedule

CRON_FIELDS = 5
MAX_CRON_CHARS = 200
MAX_YEARS_AHEAD = 50
"""What is not due for so long is never due."""

CRON_ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}
CRON_HINT = "Give minute, hour, day, month and weekday, as `0 9 * * 1-5`."


def parse_cron(expression: str) -> str:
    """The five fields of an expression that is one, and that is due some time."""
    text = " ".join(expression.split())
    text = CRON_ALIASES.get(text.lower(), text)
    if len(text) > MAX_CRON_CHARS or len(text.split()) != CRON_FIELDS:
        raise BadSchedule(f"{expression[:60]!r} has not five fields", hint=CRON_HINT)
    try:
        comes = next(due_times(text, ZoneInfo("UTC"), 0), None) is not None
    except CronSimError as error:
        raise BadSchedule(
            f"the cron expression {expression[:60]!r} is wrong: {str(error).lower()}",
            hint=CRON_HINT,
        ) from None
    if not comes:
        raise BadSchedule(f"the cron expression {expression[:60]!r} never comes true")
    return text


def due_times(cron: str, here: ZoneInfo, moment: int) -> Iterator[int]:
    """All due times after this moment, by a clock of this zone, one after the other."""
    fields = CronSim(cron, datetime.fromtimestamp(moment // SECOND, here))
    if any(field.startswith("*") for field in cron.split()[:2]):
        return _due_by_elapsed_time(fields, here, moment)
    return _due_by_wall_clock(fields, moment)


def _due_by_wall_clock(fields: CronSim, moment: int) -> Iterator[int]:
    last = moment
    for found in fields:
        due = int(found.timestamp()) * SECOND
        # Two readings that the clock skips become one; one that comes twice has been.
        if due > last:
            yield due
            last = due


def _due_by_elapsed_time(fields: CronSim, here: ZoneInfo, moment: int) -> Iterator[int]:
    """Minute by minute, but for hours and days at which nothing is due.

    The library loses minutes where the clock skips midnight, or moves by less than an hour.
    """
    at = moment // MINUTE * MINUTE + MINUTE
    shown = datetime.fromtimestamp(at // SECOND, here)
    end = shown.year + MAX_YEARS_AHEAD
    while shown.year < end:
        if not _day_matches(fields, shown.date()):
            midnight = datetime.combine(_next_day(fields, shown.date(), end), time(), here)
            # Where it is skipped, this is the moment at which the day begins.
            at = max(at + MINUTE, int(midnight.timestamp()) * SECOND)
        elif shown.hour not in fields.hours:
            at += (60 - shown.minute) * MINUTE
        else:
            if shown.minute in fields.minutes:
                yield at
            at += MINUTE
        shown = datetime.fromtimestamp(at // SECOND, here)


def _day_matches(fields: CronSim, day: date) -> bool:
    return day.month in fields.months and fields.match_day(day)


def _next_day(fields: CronSim, day: date, end: int) -> date:
    """The first day after this one that fits, or one of the year in which nobody looks any more."""
    while day.year < end:
        if day.month in fields.months:
            day += timedelta(days=1)
        else:
            day = (day.replace(day=1) + timedelta(days=32)).replace(day=1)
        if _day_matches(fields, day):
            break
    return day
