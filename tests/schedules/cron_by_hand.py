"""When a cron expression is due, found the long way: minute by minute, without the library."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from bullpen.core.clock import MINUTE, SECOND

RANGES = (range(60), range(24), range(1, 32), range(1, 13), range(8))


class Expression:
    """Five fields, each as the set of numbers that it stands for."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.sets = [
            _numbers(field, whole) for field, whole in zip(text.split(), RANGES, strict=True)
        ]

    @property
    def fixed(self) -> bool:
        """Whether it names times of the day, not intervals."""
        minute, hour, *_ = self.text.split()
        return not minute.startswith("*") and not hour.startswith("*")

    def fits(self, wall: datetime) -> bool:
        """Whether a clock that shows this is at one of its times."""
        minute, hour, day, month, weekday = self.sets
        _, _, days, _, weekdays = self.text.split()
        on_day = wall.day in day
        on_weekday = wall.isoweekday() in weekday or wall.isoweekday() % 7 in weekday
        both = days.startswith("*") or weekdays.startswith("*")
        return (
            wall.minute in minute
            and wall.hour in hour
            and wall.month in month
            and ((on_day and on_weekday) if both else (on_day or on_weekday))
        )


def due_times(text: str, zone: ZoneInfo, start: int, end: int) -> list[int]:
    """All due times after `start` and up to `end`."""
    expression = Expression(text)
    walk = _by_wall if expression.fixed else _by_time
    return sorted({due for due in walk(expression, zone, start, end) if start < due <= end})


def _by_time(expression: Expression, zone: ZoneInfo, start: int, end: int) -> Iterator[int]:
    for moment in range(start // MINUTE * MINUTE, end + 1, MINUTE):
        wall = datetime.fromtimestamp(moment // SECOND, UTC).astimezone(zone)
        if expression.fits(wall):
            yield moment


def _by_wall(expression: Expression, zone: ZoneInfo, start: int, end: int) -> Iterator[int]:
    """A wall time that is skipped counts as the moment at which the clock jumps."""
    first, last = (
        datetime.fromtimestamp(each // SECOND, UTC).astimezone(zone).replace(tzinfo=None)
        for each in (start, end)
    )
    wall = first.replace(second=0) - timedelta(hours=3)
    while wall <= last + timedelta(hours=3):
        if expression.fits(wall):
            real = wall
            while _moment(real, zone) is None:
                real += timedelta(minutes=1)
            found = _moment(real, zone)
            assert found is not None
            yield found
        wall += timedelta(minutes=1)


def _moment(wall: datetime, zone: ZoneInfo) -> int | None:
    """The first moment at which a clock shows this; None if it never does."""
    aware = wall.replace(tzinfo=zone, fold=0)
    if aware.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != wall:
        return None
    return int(aware.timestamp()) * SECOND


def _numbers(field: str, whole: range) -> set[int]:
    numbers: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        low, dash, high = span.partition("-")
        if span == "*":
            found = whole
        elif dash:
            found = range(int(low), int(high) + 1)
        else:
            found = range(int(low), whole[-1] + 1 if step else int(low) + 1)
        numbers.update(found[:: int(step or 1)])
    return numbers
