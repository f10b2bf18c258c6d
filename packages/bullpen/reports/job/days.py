"""Days: the local days that facts touch, and the facts that the results of a day depend on.

A fact touches the day of its own time. A run also touches the days from its claim to its end,
because it was busy on them, and the day on which its conversation began. All of it comes from the
times in the rows, never from the clock: late rows and a clock that was set back need no special
case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from bullpen.core.clock import HOUR, MINUTE, SECOND
from bullpen.reports import functions as F
from bullpen.reports.manifest import FactFile

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column

QUARTER_MINUTES = 15
QUARTER = QUARTER_MINUTES * MINUTE
"""Local days begin at a quarter of an hour of UTC in every time zone of today."""

HALF_DAY_HOURS = 12
"""A run with a whole day in it begins and ends in different halves of UTC days."""

MARGIN = 2 * HOUR
"""Rows around the days that are read as well; their own days are not kept."""

EPOCH = date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Days:
    """The local days whose results are computed; None means every day."""

    zone: str
    days: frozenset[date] | None

    def __bool__(self) -> bool:
        return self.days is None or bool(self.days)

    @property
    def count(self) -> int | None:
        """The number of days; None if it is every day."""
        return None if self.days is None else len(self.days)

    def spans(self) -> list[tuple[date, date]]:
        """The days as pairs of the first and the last day of each gapless series."""
        spans: list[tuple[date, date]] = []
        for day in sorted(self.days or ()):
            if spans and spans[-1][1] + timedelta(days=1) == day:
                spans[-1] = spans[-1][0], day
            else:
                spans.append((day, day))
        return spans

    def times(self) -> list[tuple[int, int]]:
        """The beginning and the end of each series in milliseconds, with a margin."""
        zone = ZoneInfo(self.zone)
        return [
            (_midnight(first, zone) - MARGIN, _midnight(last + timedelta(days=1), zone) + MARGIN)
            for first, last in self.spans()
        ]

    def select_files(self, files: Iterable[FactFile]) -> list[FactFile]:
        """The files with rows that the results of these days depend on."""
        if self.days is None:
            return list(files)
        times = self.times()
        return [
            each
            for each in files
            if any(each.latest >= begin and each.earliest < end for begin, end in times)
        ]

    def of_day(self, column: str = "day") -> Column | None:
        """The condition that a column is one of the days; None if every day is."""
        if self.days is None:
            return None
        return _any(
            F.col(column).between(F.lit(first), F.lit(last)) for first, last in self.spans()
        )

    def of_facts(self, table: str) -> Column | None:
        """The condition that a fact matters for the results of the days."""
        if self.days is None:
            return None
        return _any(_OVERLAPS[table](begin, end) for begin, end in self.times())


def _overlaps_attempt(begin: int, end: int) -> Column:
    started = F.least("claimed_at", "finished_at")
    is_run_in_it = (F.col("finished_at") >= begin) & (started < end)
    return is_run_in_it | _is_within("conversation_at", begin, end)


def _is_within(column: str, begin: int, end: int) -> Column:
    return (F.col(column) >= begin) & (F.col(column) < end)


_OVERLAPS: Mapping[str, Callable[[int, int], Column]] = {
    "attempts": _overlaps_attempt,
    "events": lambda begin, end: _is_within("created_at", begin, end),
}

TIMES = {
    "attempts": ("finished_at", "claimed_at", "conversation_at"),
    "events": ("created_at",),
}
"""The times by which a fact touches days; the first decides which file it is in."""


def touched_days(table: str, rows: pa.Table, zone_name: str) -> set[date]:
    """The local days that these facts touch."""
    import pyarrow.compute as pc

    zone = ZoneInfo(zone_name)
    days: set[date] = set()
    for each in TIMES[table]:
        quarters = pc.floor_temporal(_moments(rows[each]), QUARTER_MINUTES, "minute")
        for quarter in pc.unique(quarters.cast("int64")).to_pylist():
            if quarter is not None:
                days.update(_days_of(quarter, zone))
    if table == "attempts":
        for first, last in _long_runs(rows):
            days.update(_all_days(local_day(first, zone), local_day(last, zone)))
    return days


def days_between(first: date, last: date) -> frozenset[date]:
    """Every day from the first to the last one."""
    return frozenset(_all_days(first, last))


def days_of_month(month: str) -> frozenset[date]:
    """Every day of a month such as `2026-11`."""
    first = date.fromisoformat(f"{month}-01")
    next_month = (first + timedelta(days=31)).replace(day=1)
    return days_between(first, next_month - timedelta(days=1))


def local_day(at: int, zone: ZoneInfo) -> date:
    """The local date of a moment."""
    return datetime.fromtimestamp(at / SECOND, UTC).astimezone(zone).date()


def utc_date(number: int) -> date:
    """The UTC date that begins this number of days after 1970."""
    return EPOCH + timedelta(days=number)


def utc_dates(times: pa.ChunkedArray) -> pa.ChunkedArray:
    """The UTC dates of moments."""
    return _moments(times).cast("date32")


def _moments(times: pa.ChunkedArray) -> pa.ChunkedArray:
    # Arithmetic with a number would make PyArrow import pandas, if it is there.
    return times.cast("timestamp[ms]")


def _days_of(quarter: int, zone: ZoneInfo) -> tuple[date, date]:
    # A quarter of an hour with a change of the offset can begin and end on different days.
    return local_day(quarter, zone), local_day(quarter + QUARTER - SECOND, zone)


def _long_runs(rows: pa.Table) -> Iterator[tuple[int, int]]:
    """The claim and the end of each run with a day between those of its claim and of its end."""
    import pyarrow.compute as pc

    halves = [
        pc.floor_temporal(_moments(rows[each]), HALF_DAY_HOURS, "hour")
        for each in ("claimed_at", "finished_at")
    ]
    long = rows.select(["claimed_at", "finished_at"]).filter(pc.less(*halves))
    return zip(*(each.to_pylist() for each in long.columns), strict=True)


def _all_days(first: date, last: date) -> Iterator[date]:
    for number in range((last - first).days + 1):
        yield first + timedelta(days=number)


def _midnight(day: date, zone: ZoneInfo) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=zone).timestamp()) * SECOND


def _any(conditions: Iterable[Column]) -> Column:
    found: Sequence[Column] = list(conditions)
    result = F.lit(False)
    for each in found:
        result = result | each
    return result
