"""Due times: what a clock in that zone shows, whatever its summer time does; and bad input."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bullpen.core.clock import DAY, HOUR, MINUTE, SECOND
from bullpen.core.errors import BadSchedule
from bullpen.core.schedules.timing import Timing, TimingKind, cron_timing, every_timing, once_timing
from tests.schedules.cron_by_hand import due_times
from tests.stores import START

# Some skip midnight, one moves by half an hour and one by two hours.
ZONES = (
    *("UTC", "Europe/Berlin", "America/New_York", "America/St_Johns", "Africa/Cairo"),
    *("America/Santiago", "Africa/Casablanca", "Asia/Kathmandu", "Pacific/Auckland"),
    *(
        "Asia/Beirut",
        "America/Havana",
        "Atlantic/Azores",
        "Australia/Lord_Howe",
        "Antarctica/Troll",
    ),
)


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp()) * SECOND


def shown(moment: int) -> str:
    return datetime.fromtimestamp(moment // SECOND, UTC).isoformat()


def changes(zone: ZoneInfo, year: int) -> list[int]:
    """The days of this year on which the clocks are changed."""
    day = datetime(year, 1, 1, tzinfo=UTC)
    found = []
    for _ in range(366):
        following = day + timedelta(days=1)
        if day.astimezone(zone).utcoffset() != following.astimezone(zone).utcoffset():
            found.append(int(day.timestamp()) * SECOND)
        day = following
    return found


def field(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    span = st.integers(low, high - 1).flatmap(
        lambda first: st.integers(first + 1, high).map(lambda last: f"{first}-{last}")
    )
    one = number.map(str)
    return st.one_of(
        st.just("*"),
        one,
        one,
        st.lists(one, min_size=2, max_size=3).map(",".join),
        span,
        st.integers(2, 20).map(lambda step: f"*/{step}"),
        st.tuples(span, st.integers(1, 5)).map(lambda both: f"{both[0]}/{both[1]}"),
    )


EXPRESSIONS = st.tuples(
    field(0, 59),
    st.one_of(field(0, 4), field(0, 23)),  # clocks are changed at night
    st.one_of(st.just("*"), st.just("*"), field(1, 28)),
    st.one_of(st.just("*"), st.just("*"), st.just("*"), field(1, 12)),
    st.one_of(st.just("*"), st.just("*"), field(0, 6)),
).map(" ".join)


@st.composite
def windows(draw: st.DrawFn) -> tuple[str, int, int]:
    """A zone and some days of it, mostly around a change of its clocks."""
    name = draw(st.sampled_from(ZONES))
    year = draw(st.integers(2024, 2030))
    days = changes(ZoneInfo(name), year) or [ms(f"{year}-06-01T00:00+00:00")]
    start = draw(st.sampled_from(days)) - draw(st.integers(0, 2 * DAY // MINUTE)) * MINUTE
    return name, start, start + draw(st.integers(1, 3)) * DAY


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(EXPRESSIONS, windows())
def test_a_cron_expression_is_due_when_the_clock_shows_it(
    expression: str, window: tuple[str, int, int]
) -> None:
    name, start, end = window
    try:
        timing = cron_timing(expression, name, start)
    except BadSchedule:
        assert due_times(expression, ZoneInfo(name), start, end) == []
        return
    found = list(takewhile(lambda due: due <= end, timing.due_times_after(start)))
    by_hand = due_times(expression, ZoneInfo(name), start, end)
    assert [shown(each) for each in found] == [shown(each) for each in by_hand]


@settings(max_examples=200, deadline=None)
@given(EXPRESSIONS, windows(), st.lists(st.integers(0, 4 * DAY), max_size=5))
def test_the_due_times_are_the_same_from_wherever_one_looks(
    expression: str, window: tuple[str, int, int], looks: list[int]
) -> None:
    name, start, end = window
    try:
        timing = cron_timing(expression, name, start)
    except BadSchedule:
        return
    known = list(islice(takewhile(lambda due: due <= end, timing.due_times_after(start)), 500))
    for moment in [*known[:20], *(start + each for each in looks)]:
        later = [due for due in known if due > moment][:3]
        assert list(islice(timing.due_times_after(moment), len(later))) == later


@pytest.mark.parametrize(
    ("zone", "expression", "start", "expected"),
    [
        # Spring: 02:30 does not exist on the 29th; it comes at 03:00, which is 01:00 UTC.
        ("Europe/Berlin", "30 2 * * *", "2026-03-28T00:00Z",
         ["03-28T01:30", "03-29T01:00", "03-30T00:30"]),
        # Two times that are skipped come as one.
        ("Europe/Berlin", "0,30 2 * * *", "2026-03-29T00:30Z",
         ["03-29T01:00", "03-30T00:00", "03-30T00:30"]),
        # Autumn: 02:30 comes twice on the 25th, and fires once.
        ("Europe/Berlin", "30 2 * * *", "2026-10-24T20:00Z",
         ["10-25T00:30", "10-26T01:30", "10-27T01:30"]),
        # Who looks when it is 02:17 for the second time sees that it has been.
        ("Europe/Berlin", "30 2 * * *", "2026-10-25T01:17Z",
         ["10-26T01:30", "10-27T01:30", "10-28T01:30"]),
        # What goes by intervals goes on through both.
        ("Europe/Berlin", "*/30 * * * *", "2026-10-24T23:59Z",
         ["10-25T00:00", "10-25T00:30", "10-25T01:00"]),
        ("Europe/Berlin", "*/30 2 * * *", "2026-10-25T00:00Z",
         ["10-25T00:30", "10-25T01:00", "10-25T01:30"]),
        # In Santiago midnight is skipped on September 6th: the day begins at 01:00, at 04:00 UTC.
        ("America/Santiago", "0 0 * * 0", "2026-09-05T20:00Z",
         ["09-06T04:00", "09-13T03:00", "09-20T03:00"]),
        ("America/Santiago", "*/30 * * * 0", "2026-09-05T20:00Z",
         ["09-06T04:00", "09-06T04:30", "09-06T05:00"]),
        ("America/Santiago", "*/30 0 * * 0", "2026-09-05T20:00Z",
         ["09-13T03:00", "09-13T03:30", "09-20T03:00"]),
        ("Asia/Beirut", "*/30 1 * * 0", "2026-03-28T12:00Z",
         ["03-28T22:00", "03-28T22:30", "04-04T22:00"]),
        # On Lord Howe Island clocks go from 02:00 to 02:30, on October 4th at 15:30 UTC of the 3rd.
        ("Australia/Lord_Howe", "*/15 2 * * *", "2026-10-03T15:00Z",
         ["10-03T15:30", "10-03T15:45", "10-04T15:00"]),
    ],
)  # fmt: skip
def test_when_the_clocks_are_changed(
    zone: str, expression: str, start: str, expected: list[str]
) -> None:
    timing = cron_timing(expression, zone, ms(start) - 1)
    found = [shown(each)[5:16] for each in islice(timing.due_times_after(ms(start)), 3)]
    assert found == expected


def test_an_interval_counts_from_when_it_was_made_and_knows_no_summer_time() -> None:
    timing = every_timing(6 * HOUR, "Europe/Berlin", START)
    assert timing.after(START) == START + 6 * HOUR
    assert timing.after(START + 6 * HOUR) == START + 12 * HOUR
    assert timing.after(START + 365 * DAY + 1) == START + 365 * DAY + 6 * HOUR
    assert timing.after(START - 99 * DAY) == START + 6 * HOUR


def test_once_is_once() -> None:
    timing = once_timing(START + DAY, "UTC", START)
    assert list(timing.due_times_after(START)) == [START + DAY]
    assert timing.after(START + DAY) is None


@pytest.mark.parametrize("name", ["@hourly", "@daily", "@weekly", "@monthly", "@yearly", "@DAILY"])
def test_expressions_have_names(name: str) -> None:
    assert cron_timing(name, "UTC", START).after(START) is not None


@pytest.mark.parametrize(
    "expression",
    [
        *("", " ", "* * * *", "* * * * * *", "60 * * * *", "0 24 * * *", "0 0 0 * *"),
        *("0 0 30 2 *", "0 0 31 4,6,9,11 *", "a b c d e", "*/0 * * * *", "5-1 * * * *"),
        *("0 0 * * 8", "@reboot", "\x00 * * * *", "٣ * * * *", "0 0 * * MON#6", "* * * * *;rm"),
        *("0 0 29 2 MON#5 x", "1" * 5000 + " * * * *", "1,,2 * * * *", "-1 * * * *", "0 0 L-3 * *"),
    ],
)
def test_what_is_no_expression_is_refused_with_an_example(expression: str) -> None:
    with pytest.raises(BadSchedule) as refused:
        cron_timing(expression, "UTC", START)
    assert "0 9 * * 1-5" in refused.value.hint or "never" in str(refused.value)


@pytest.mark.parametrize(
    "name",
    ["Mars/Olympus", "", "../etc/passwd", "/etc/localtime", "a" * 5000, "Europe", "\x00", "UTC\n"],
)
def test_an_unknown_zone_is_refused_with_an_example(name: str) -> None:
    with pytest.raises(BadSchedule) as refused:
        cron_timing("0 9 * * *", name, START)
    assert "Europe/Berlin" in refused.value.hint


@pytest.mark.parametrize("every", [0, -1, MINUTE - 1, 3651 * DAY, 1 << 70])
def test_an_interval_under_a_minute_or_over_ten_years_is_refused(every: int) -> None:
    with pytest.raises(BadSchedule):
        every_timing(every, "UTC", START)


@pytest.mark.parametrize("at", [START, START - 1, 0, -1, START + 3651 * DAY, 1 << 70])
def test_a_time_in_the_past_or_far_away_is_refused(at: int) -> None:
    with pytest.raises(BadSchedule):
        once_timing(at, "UTC", START)


def test_nothing_is_due_until_after_its_beginning() -> None:
    timing = Timing(kind=TimingKind.CRON, cron="* * * * *", anchor=START)
    assert timing.after(0) is not None
    assert timing.after(0) > START  # type: ignore[operator]
