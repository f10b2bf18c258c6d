"""Charts in a terminal: what a person sees, in Unicode and in ASCII."""

from __future__ import annotations

from datetime import date
from zoneinfo import ZoneInfo

import pytest

from bullpen.reports import Chart, ChartKind, Column, Type, Unit
from bullpen.reports.read.text_chart import ASCII, UNICODE, Canvas, draw_chart
from bullpen.reports.read.values import Value, format_value

UTC = ZoneInfo("UTC")
DAY = Column("day", Type.DATE, "The day.")
HOUR = Column("hour", Type.INTEGER, "The hour.")
AGENT = Column("agent", Type.TEXT, "The agent.")
RUNS = Column("runs", Type.INTEGER, "Runs.", Unit.COUNT)
P50 = Column("p50", Type.INTEGER, "The median.", Unit.MILLISECONDS)
P95 = Column("p95", Type.INTEGER, "95 % are faster.", Unit.MILLISECONDS)
SCREEN = Canvas(60, UNICODE, UTC)
PLAIN = Canvas(60, ASCII, UTC)


def test_bars_are_in_proportion_and_small_values_are_visible() -> None:
    chart = Chart(kind=ChartKind.BAR, x="agent", y=("runs",))
    rows = [("coder", 1000), ("tester", 500), ("idle", 0), ("rare", 1)]
    lines = draw_chart(chart, (AGENT, RUNS), rows, SCREEN)
    lengths = {each.split()[0]: each.count("█") for each in lines}
    assert lengths == {"coder": 45, "tester": 22, "idle": 0, "rare": 0}
    assert lines[3] == "rare    ▏ 1"
    assert lines[0].endswith(" 1,000")
    assert max(map(len, lines)) <= 60
    assert draw_chart(chart, (AGENT, RUNS), rows, PLAIN)[3] == "rare    # 1"


def test_lines_have_blanks_for_days_without_rows() -> None:
    chart = Chart(kind=ChartKind.LINE, x="day", y=("p50", "p95"))
    rows = [(date(2026, 11, 1), 10, 100), (date(2026, 11, 4), 40, 0)]
    assert draw_chart(chart, (DAY, P50, P95), rows, SCREEN) == [
        "p50  ▂  ▄  max 40 ms",
        "p95  █  ▁  max 100 ms",
        "     2026-11-01 2026-11-04",
    ]


def test_only_stacked_values_are_added() -> None:
    rows = [(date(2026, 11, 1), "coder", 10), (date(2026, 11, 1), "coder", 30)]
    for kind, text in ((ChartKind.LINE, "max 30"), (ChartKind.STACKED, "max 40")):
        chart = Chart(kind=kind, x="day", y=("runs",), series="agent")
        assert draw_chart(chart, (DAY, AGENT, RUNS), rows, SCREEN)[0].endswith(text)


def test_values_stacked_by_name_are_bars_of_their_sum() -> None:
    chart = Chart(kind=ChartKind.STACKED, x="agent", y=("runs", "more"))
    more = Column("more", Type.INTEGER, "More.", Unit.COUNT)
    lines = draw_chart(chart, (AGENT, RUNS, more), [("coder", 30, 10), ("tester", 20, 0)], PLAIN)
    assert [each.split()[-1] for each in lines] == ["40", "20"]
    assert lines[0].count("#") == 2 * lines[1].count("#")


def test_a_long_period_fits_the_width_and_keeps_its_highest_day() -> None:
    chart = Chart(kind=ChartKind.STACKED, x="day", y=("runs",), series="agent")
    days = [date.fromordinal(date(2026, 1, 1).toordinal() + n) for n in range(365)]
    rows: list[tuple[Value, ...]] = [
        (day, "coder", 9 if n == 200 else 1) for n, day in enumerate(days)
    ]
    lines = draw_chart(chart, (DAY, AGENT, RUNS), rows, PLAIN)
    assert lines[0].count("#") == 1
    assert max(map(len, lines)) <= 60
    assert lines[-1].split() == ["2026-01-01", "2026-12-31"]


def test_a_heat_map_is_darkest_where_the_value_is_highest() -> None:
    chart = Chart(kind=ChartKind.HEATMAP, x="hour", y=("agent",), series="runs")
    rows = [(0, "coder", 1), (2, "coder", 8), (1, "tester", 4)]
    assert draw_chart(chart, (HOUR, AGENT, RUNS), rows, PLAIN) == [
        "coder   :::...###",
        "tester  ...+++...",
        "        0       2",
        "# = 8",
    ]


@pytest.mark.parametrize("kind", list(ChartKind))
def test_no_chart_is_drawn_of_nothing(kind: ChartKind) -> None:
    chart = Chart(kind=kind, x="day", y=("runs",), series="runs")
    for rows in ([], [(date(2026, 11, 1), 0)], [(None, None)]):
        assert draw_chart(chart, (DAY, RUNS), rows, SCREEN) == []


def test_people_see_units() -> None:
    shown = {
        format_value(Column("x", Type.NUMBER, "A value.", unit), value, ZoneInfo("Europe/Berlin"))
        for unit, value in (
            (Unit.MILLISECONDS, 850),
            (Unit.MILLISECONDS, 12_345),
            (Unit.MILLISECONDS, 252_000),
            (Unit.MILLISECONDS, 11_100_000),
            (Unit.MILLISECONDS, 187_200_000),
            (Unit.DOLLARS, 1234.5),
            (Unit.DOLLARS, 0.00042),
            (Unit.SHARE, 0.125),
            (Unit.COUNT, 1234567),
            (Unit.TOKENS, 12.5),
            (Unit.TIME, 1_795_176_000_000),
            (None, None),
            (None, float("nan")),
        )
    }
    assert shown == {
        *("850 ms", "12.3 s", "4 min 12 s", "3 h 5 min", "2 d 4 h"),
        *("$1,234.50", "$0.00042", "12.5 %", "1,234,567", "12.50", "2026-11-20 13:00", ""),
    }
