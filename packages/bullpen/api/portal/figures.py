"""Figures: the rows of a view as traces and axes for Plotly; the page adds the colours."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bullpen.reports import Chart, ChartKind, Column, Type, Unit, View

MAX_SERIES = 7
"""More lines or stacks than this cannot be told apart; the smallest ones become `other`."""

OTHER = "other"
SUMMED = frozenset({Unit.COUNT, Unit.TOKENS, Unit.DOLLARS, Unit.MILLISECONDS})

Value = str | int | float | bool | None
Row = Mapping[str, Value]
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
    series = _by_column(chart, rows) if chart.series is None else _by_series(chart, values, rows)
    traces: list[dict[str, object]] = []
    for name, points in series.items():
        xs = sorted(points, key=str) if columns[chart.x].type is Type.DATE else list(points)
        label = columns[name].name.replace("_", " ") if name in columns else name
        trace: dict[str, object] = {
            "name": label,
            "x": xs,
            "y": [_scale(values, points[each]) for each in xs],
        }
        if chart.kind is ChartKind.LINE:
            trace |= {"type": "scatter", "mode": "lines" if len(xs) > 1 else "markers"}
        else:
            trace |= {"type": "bar"}
        traces.append(trace)
    layout: dict[str, object] = {
        "xaxis": _category_or_date(columns[chart.x]),
        "yaxis": {**_number_axis(values), "rangemode": "tozero"},
        "showlegend": len(traces) > 1,
    }
    if chart.kind is not ChartKind.LINE:
        layout["barmode"] = "stack" if stacked else "group"
    return Figure(traces, layout)


def _by_column(chart: Chart, rows: Sequence[Row]) -> dict[str, dict[Value, Value]]:
    """One series for each value column."""
    return {y: {row[chart.x]: row[y] for row in rows} for y in chart.y}


def _by_series(chart: Chart, values: Column, rows: Sequence[Row]) -> dict[str, dict[Value, Value]]:
    """One series for each value of the series' column, the largest first."""
    assert chart.series is not None
    series: defaultdict[str, dict[Value, Value]] = defaultdict(dict)
    for row in rows:
        name = row[chart.series]
        series["none" if name is None else str(name)][row[chart.x]] = row[chart.y[0]]
    ordered = sorted(series, key=lambda name: -sum(map(_number, series[name].values())))
    kept, rest = ordered[:MAX_SERIES], ordered[MAX_SERIES:]
    found = {name: series[name] for name in kept}
    if rest and values.unit in SUMMED:
        total: defaultdict[Value, Value] = defaultdict(int)
        for name in rest:
            for x, y in series[name].items():
                total[x] = _number(total[x]) + _number(y)
        found[OTHER] = dict(total)
    return found


def _heatmap(chart: Chart, columns: Mapping[str, Column], rows: Sequence[Row]) -> Figure:
    assert chart.series is not None
    values = columns[chart.series]
    xs = list(dict.fromkeys(row[chart.x] for row in rows))
    ys = list(dict.fromkeys(row[chart.y[0]] for row in rows))
    cells = {(row[chart.x], row[chart.y[0]]): _scale(values, row[chart.series]) for row in rows}
    trace: dict[str, object] = {
        "type": "heatmap",
        "x": xs,
        "y": ys,
        "z": [[cells.get((x, y)) for x in xs] for y in ys],
        "colorbar": {"thickness": 10, "outlinewidth": 0, **_number_axis(values)},
        "hovertemplate": "%{x} · %{y}: %{z}<extra></extra>",
    }
    layout: dict[str, object] = {
        "xaxis": {"type": "category"},
        "yaxis": {"type": "category", "autorange": "reversed"},
    }
    return Figure([trace], layout)


def _category_or_date(column: Column) -> Axis:
    return {"type": "date"} if column.type is Type.DATE else {"type": "category"}


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
