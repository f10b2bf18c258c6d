"""Figures: the rows of a view as traces and axes for Plotly; the page adds the colours."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bullpen.reports import Chart, ChartKind, Column, Type, Unit, View
from bullpen.reports.read.values import WEEKDAYS

MAX_SERIES = 7
"""More lines or stacks than this cannot be told apart; the smallest ones become `other`."""

OTHER = "other"
MAX_BARS = 25
"""More bars than this have no room for their names."""

MAX_LABEL = 28
MAX_DAY_LABELS = 5
"""Each of at most so many days has a label on its axis."""

SUMMED = frozenset({Unit.COUNT, Unit.TOKENS, Unit.DOLLARS})
"""Units of values that can be added: of durations, most columns are percentiles."""

Value = str | int | float | bool | None
Row = Mapping[str, Value]
Points = dict[Value, Value]
Axis = dict[str, object]


@dataclass(frozen=True, slots=True)
class Figure:
    """What Plotly draws."""

    traces: list[dict[str, object]]
    layout: dict[str, object]


def make_figure(view: View, rows: Sequence[Row]) -> Figure | None:
    """The figure of these rows; None if the view has no chart or no rows."""
    if view.chart is None or not rows:
        return None
    columns = {each.name: each for each in view.columns}
    if view.chart.kind is ChartKind.HEATMAP:
        return _heatmap(view.chart, columns, rows)
    return _traces(view.chart, columns, rows)


def _traces(chart: Chart, columns: Mapping[str, Column], rows: Sequence[Row]) -> Figure:
    values = columns[chart.y[0]]
    stacked = chart.kind is ChartKind.STACKED
    series = make_series(chart, columns, rows)
    traces: list[dict[str, object]] = []
    is_date = columns[chart.x].type is Type.DATE
    for name, points in series.items():
        xs = sorted(points, key=str) if is_date else list(points)[:MAX_BARS]
        trace: dict[str, object] = {
            "name": name.replace("_", " ") if chart.series is None else name,
            "x": xs if is_date else [_label(columns[chart.x], each) for each in xs],
            "y": [_scale(values, points[each]) for each in xs],
        }
        if chart.kind is ChartKind.LINE:
            trace |= {"type": "scatter", "mode": "lines" if len(xs) > 1 else "markers"}
        else:
            trace |= {"type": "bar"}
        traces.append(trace)
    layout: dict[str, object] = {
        "xaxis": _date_axis(traces) if is_date else _category_axis(traces),
        "yaxis": {**_number_axis(values), "rangemode": "tozero"},
        "showlegend": len(traces) > 1,
    }
    if chart.kind is not ChartKind.LINE:
        layout["barmode"] = "stack" if stacked else "group"
    return Figure(traces, layout)


def make_series(
    chart: Chart, columns: Mapping[str, Column], rows: Sequence[Row]
) -> dict[str, Points]:
    """The values by place, for each value column or each value of the series' column."""
    if chart.series is None:
        return _by_column(chart, columns, rows)
    return _by_series(chart, columns[chart.y[0]], rows)


def _by_column(
    chart: Chart, columns: Mapping[str, Column], rows: Sequence[Row]
) -> dict[str, Points]:
    """One series for each value column."""
    return {y: _points(columns[y], ((row[chart.x], row[y]) for row in rows)) for y in chart.y}


def _by_series(chart: Chart, values: Column, rows: Sequence[Row]) -> dict[str, Points]:
    """One series for each value of the series' column, the largest first."""
    assert chart.series is not None
    pairs: defaultdict[str, list[tuple[Value, Value]]] = defaultdict(list)
    for row in rows:
        pairs[_name(row[chart.series])].append((row[chart.x], row[chart.y[0]]))
    series = {name: _points(values, each) for name, each in pairs.items()}
    ordered = sorted(series, key=lambda name: -sum(map(_number, series[name].values())))
    kept, rest = ordered[:MAX_SERIES], ordered[MAX_SERIES:]
    found = {name: series[name] for name in kept}
    if rest and values.unit in SUMMED:
        found[OTHER] = _points(values, (pair for name in rest for pair in pairs[name]))
    return found


def _points(column: Column, pairs: Iterable[tuple[Value, Value]]) -> Points:
    """The values by place; two values at one place are added if that makes sense."""
    points: Points = {}
    for x, y in pairs:
        adds = x in points and column.unit in SUMMED
        points[x] = _number(points[x]) + _number(y) if adds else y
    return points


def _heatmap(chart: Chart, columns: Mapping[str, Column], rows: Sequence[Row]) -> Figure:
    assert chart.series is not None
    values = columns[chart.series]
    xs = list(dict.fromkeys(row[chart.x] for row in rows))
    ys = list(dict.fromkeys(row[chart.y[0]] for row in rows))
    cells = {(row[chart.x], row[chart.y[0]]): _scale(values, row[chart.series]) for row in rows}
    trace: dict[str, object] = {
        "type": "heatmap",
        "x": [_label(columns[chart.x], each) for each in xs],
        "y": [_label(columns[chart.y[0]], each) for each in ys],
        "zmin": 0,
        "z": [[cells.get((x, y)) for x in xs] for y in ys],
        "colorbar": {"thickness": 10, "outlinewidth": 0, **_number_axis(values)},
        "hovertemplate": "%{x} · %{y}: %{z}<extra></extra>",
    }
    layout: dict[str, object] = {
        "xaxis": {"type": "category"},
        "yaxis": {"type": "category", "autorange": "reversed", "showgrid": False},
    }
    return Figure([trace], layout)


def _label(column: Column, value: Value) -> str:
    return WEEKDAYS[round(_number(value)) - 1] if column.unit is Unit.WEEKDAY else _name(value)


def _name(value: Value) -> str:
    return "none" if value is None else str(value)


def _date_axis(traces: Sequence[Mapping[str, object]]) -> Axis:
    """An axis of days; of a few days, each has its label, as Plotly would show hours between."""
    days = sorted({str(x) for each in traces for x in _list(each["x"])})
    if len(days) > MAX_DAY_LABELS:
        return {"type": "date"}
    return {"type": "date", "tickvals": days, "tickformat": "%b %-d<br>%Y"}


def _category_axis(traces: Sequence[Mapping[str, object]]) -> Axis:
    """An axis of names; long ones are cut, but stay different places."""
    names = dict.fromkeys(str(x) for each in traces for x in _list(each["x"]))
    if all(len(each) <= MAX_LABEL for each in names):
        return {"type": "category"}
    cut = [each if len(each) <= MAX_LABEL else f"{each[: MAX_LABEL - 1]}…" for each in names]
    return {"type": "category", "tickmode": "array", "tickvals": list(names), "ticktext": cut}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _number_axis(column: Column) -> Axis:
    match column.unit:
        case Unit.MILLISECONDS:
            return {"ticksuffix": " s"}
        case Unit.DOLLARS:
            return {"tickprefix": "$"}
        case Unit.SHARE:
            return {"tickformat": ".0%"}
        case _:
            return {}


def _scale(column: Column, value: Value) -> Value:
    """The value as its axis shows it: durations in seconds."""
    if column.unit is Unit.MILLISECONDS and isinstance(value, int | float):
        return value / 1000
    return value


def _number(value: Value) -> float:
    return value if isinstance(value, int | float) else 0
