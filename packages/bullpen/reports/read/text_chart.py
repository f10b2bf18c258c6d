"""Charts of text for a terminal: bars, sparklines and heat maps, in Unicode or in ASCII."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from zoneinfo import ZoneInfo

from bullpen.core.text import format_count
from bullpen.reports.read.filter import DAY
from bullpen.reports.read.values import Value, format_value
from bullpen.reports.report import Chart, ChartKind
from bullpen.reports.schema import Column, Schema, Type

MAX_BARS = 20
MAX_LINES = 12
MAX_LABEL = 28
MIN_PLOT = 10

Row = Sequence[Value]
Points = Mapping[Value, float]


@dataclass(frozen=True, slots=True)
class Symbols:
    """The characters that charts are drawn with."""

    bar: str
    """A full cell of a bar."""
    parts: str
    """The end of a bar, by eighths of a cell."""
    levels: str
    """The heights of a sparkline; the first one is zero."""
    shades: str
    """The cells of a heat map; the first one is zero."""
    cut: str
    """The end of a label that was cut."""


UNICODE = Symbols(bar="█", parts=" ▏▎▍▌▋▊▉", levels="▁▂▃▄▅▆▇█", shades="·░▒▓█", cut="…")
ASCII = Symbols(bar="#", parts=" ", levels="_.-=+*%#", shades=".:+%#", cut="~")


@dataclass(frozen=True, slots=True)
class Canvas:
    """Where a chart is drawn."""

    width: int
    symbols: Symbols
    zone: ZoneInfo


def draw_chart(chart: Chart, columns: Schema, rows: Sequence[Row], canvas: Canvas) -> list[str]:
    """The lines of a chart of these rows; none if there is nothing to draw."""
    table = _Table(columns, rows)
    match chart.kind:
        case ChartKind.STACKED if table.column(chart.x).type is Type.TEXT:
            return list(_draw_bars(chart, table, canvas))
        case ChartKind.BAR:
            return list(_draw_bars(replace(chart, y=chart.y[:1]), table, canvas))
        case ChartKind.HEATMAP:
            return list(_draw_heatmap(chart, table, canvas))
        case ChartKind.LINE | ChartKind.STACKED:
            return list(_draw_lines(chart, table, canvas))


class _Table:
    """Rows whose columns are found by name."""

    def __init__(self, columns: Schema, rows: Sequence[Row]) -> None:
        self.rows = rows
        self._columns = {each.name: (index, each) for index, each in enumerate(columns)}

    def column(self, name: str) -> Column:
        return self._columns[name][1]

    def values(self, name: str) -> list[Value]:
        index = self._columns[name][0]
        return [row[index] for row in self.rows]

    def numbers(self, name: str) -> list[float]:
        """The values as numbers; 0 for NULL."""
        return [_number(each) for each in self.values(name)]


def _number(value: Value) -> float:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else 0.0


def _draw_bars(chart: Chart, table: _Table, canvas: Canvas) -> Iterator[str]:
    """A bar for each row, in the order of the view; its length is the sum of the values."""
    value = table.column(chart.y[0])
    names = _labels(table, chart, canvas)[:MAX_BARS]
    amounts = [sum(each) for each in zip(*map(table.numbers, chart.y), strict=True)][:MAX_BARS]
    texts = [format_value(value, each, canvas.zone) for each in amounts]
    highest = max(amounts, default=0.0)
    if highest <= 0:
        return
    label_width = max(map(len, names))
    room = max(MIN_PLOT, canvas.width - label_width - max(map(len, texts)) - 4)
    for name, amount, text in zip(names, amounts, texts, strict=True):
        bar = _bar(amount / highest, room, canvas.symbols)
        yield f"{name:<{label_width}}  {bar} {text}".rstrip()
    if len(table.rows) > MAX_BARS:
        yield f"Not drawn: {format_count(len(table.rows) - MAX_BARS, 'row')}."


def _labels(table: _Table, chart: Chart, canvas: Canvas) -> list[str]:
    x = table.column(chart.x)
    names = [format_value(x, each, canvas.zone) for each in table.values(chart.x)]
    if chart.series is not None:
        series = table.column(chart.series)
        others = [format_value(series, each, canvas.zone) for each in table.values(series.name)]
        names = [f"{name} {other}" for name, other in zip(names, others, strict=True)]
    return [_cut(each or "-", canvas.symbols) for each in names]


def _cut(label: str, symbols: Symbols) -> str:
    line = " ".join(label.split())
    return line if len(line) <= MAX_LABEL else line[: MAX_LABEL - 1] + symbols.cut


def _bar(share: float, width: int, symbols: Symbols) -> str:
    """A bar of this share of the width; what is above zero is visible."""
    steps = len(symbols.parts)
    eighths = max(round(share * width * steps), 1 if share > 0 else 0)
    full, part = divmod(eighths, steps)
    return symbols.bar * full + symbols.parts[part].strip()


def _draw_lines(chart: Chart, table: _Table, canvas: Canvas) -> Iterator[str]:
    """A sparkline for each series, all on the same scale."""
    positions = _positions(table, chart.x)
    series = _series(chart, table, canvas)
    highest = max((max(each.values(), default=0.0) for _, _, each in series), default=0.0)
    if highest <= 0 or not positions:
        return
    shown = series[:MAX_LINES]
    texts = [
        format_value(column, max(points.values(), default=0.0), canvas.zone)
        for _, column, points in shown
    ]
    label_width = max(len(name) for name, _, _ in shown)
    room = max(MIN_PLOT, canvas.width - label_width - max(map(len, texts)) - 8)
    buckets = _buckets(positions, room)
    for (name, _, points), text in zip(shown, texts, strict=True):
        line = _sparkline(points, buckets, highest, canvas.symbols)
        yield f"{name:<{label_width}}  {line}  max {text}".rstrip()
    yield " " * (label_width + 2) + _axis(chart, table, positions, len(buckets), canvas)
    if len(series) > MAX_LINES:
        yield f"Not drawn: {format_count(len(series) - MAX_LINES, 'series', 'series')}."


def _positions(table: _Table, name: str) -> list[Value]:
    """The values of the x-axis in order; days without rows are included."""
    values = table.values(name)
    days = [each for each in values if isinstance(each, date)]
    if name == DAY and days:
        first = min(days)
        return [first + timedelta(days=n) for n in range((max(days) - first).days + 1)]
    return sorted({each for each in values if each is not None}, key=_sort_key)


def _sort_key(value: Value) -> tuple[float, str]:
    return (float(value), "") if isinstance(value, int | float) else (0.0, str(value))


def _series(
    chart: Chart, table: _Table, canvas: Canvas
) -> list[tuple[str, Column, dict[Value, float]]]:
    """The points of each series and value column, the series with the highest sum first."""
    found: dict[tuple[str, str], dict[Value, float]] = {}
    x = table.values(chart.x)
    names = [""] * len(x)
    if chart.series is not None:
        column = table.column(chart.series)
        names = [format_value(column, each, canvas.zone) for each in table.values(column.name)]
    for y in chart.y:
        for at, name, amount in zip(x, names, table.numbers(y), strict=True):
            points = found.setdefault((name, y), {})
            # Only what is stacked can be added: the sum of two percentiles means nothing.
            points[at] = (
                points.get(at, 0.0) + amount
                if chart.kind is ChartKind.STACKED
                else max(points.get(at, 0.0), amount)
            )
    lines = []
    for (name, y), points in found.items():
        label = " ".join(each for each in (name, y if len(chart.y) > 1 or not name else "") if each)
        lines.append((_cut(label, canvas.symbols), table.column(y), points))
    if len(chart.y) == 1:
        lines.sort(key=lambda each: -sum(each[2].values()))
    return lines


def _buckets(positions: Sequence[Value], room: int) -> list[Sequence[Value]]:
    """The positions of each cell: several where there are more positions than cells."""
    size = -(-len(positions) // room)
    return [positions[start : start + size] for start in range(0, len(positions), size)]


def _sparkline(
    points: Points, buckets: Sequence[Sequence[Value]], highest: float, symbols: Symbols
) -> str:
    """A cell for each bucket, as high as its highest point; blank where there are no points."""
    cells = []
    for bucket in buckets:
        amounts = [points[each] for each in bucket if each in points]
        cells.append(_pick(max(amounts) / highest, symbols.levels) if amounts else " ")
    return "".join(cells)


def _pick(share: float, symbols: str) -> str:
    """The symbol of a share: the first one is only for zero."""
    if share <= 0:
        return symbols[0]
    return symbols[max(1, min(len(symbols) - 1, round(share * (len(symbols) - 1))))]


def _axis(
    chart: Chart, table: _Table, positions: Sequence[Value], cells: int, canvas: Canvas
) -> str:
    """The first and the last value of the x-axis, below the ends of the lines."""
    column = table.column(chart.x)
    first = format_value(column, positions[0], canvas.zone)
    last = format_value(column, positions[-1], canvas.zone)
    if first == last:
        return first
    return f"{first}{last.rjust(max(len(last) + 1, cells - len(first)))}"


def _draw_heatmap(chart: Chart, table: _Table, canvas: Canvas) -> Iterator[str]:
    """A cell for each combination of two columns, the darker the higher the value."""
    if chart.series is None:
        return
    down = table.column(chart.y[0])
    amounts = table.numbers(chart.series)
    highest = max(amounts, default=0.0)
    if highest <= 0:
        return
    cells: dict[tuple[Value, Value], float] = {}
    places = zip(table.values(chart.x), table.values(down.name), strict=True)
    for place, amount in zip(places, amounts, strict=True):
        cells[place] = max(cells.get(place, 0.0), amount)
    across = _positions(table, chart.x)
    lines = sorted({each for each in table.values(down.name) if each is not None}, key=_sort_key)
    labels = [_cut(format_value(down, each, canvas.zone), canvas.symbols) for each in lines]
    label_width = max(map(len, labels))
    cell = max(1, min(3, (canvas.width - label_width - 2) // len(across)))
    for label, line in zip(labels, lines, strict=True):
        shades = (
            _pick(cells.get((at, line), 0.0) / highest, canvas.symbols.shades) for at in across
        )
        yield f"{label:<{label_width}}  {''.join(each * cell for each in shades)}"
    yield " " * (label_width + 2) + _axis(chart, table, across, len(across) * cell, canvas)
    top = format_value(table.column(chart.series), highest, canvas.zone)
    yield f"{canvas.symbols.shades[-1]} = {top}"
