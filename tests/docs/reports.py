"""The page about the reports: each with its question, its tables and views, and their columns."""

from __future__ import annotations

from collections.abc import Iterable

from bullpen.core.registry import REPORTS
from bullpen.reports.read.filter import filters_of
from bullpen.reports.report import Chart, Report, Table, View, load_report
from bullpen.reports.schema import Column, Unit

BEGIN = """# Reports

A report answers a question about past runs. `bullpen report run` computes the tables of each report
with Spark; the service `reports` does it every hour. A view is a query over the tables, with a
chart. Views are read without Spark:

```
bullpen report list
bullpen report show usage                    # the first view
bullpen report show usage --view agents --since 30d
bullpen report show usage --table usage --json
```

* **Days** are those of the setting `time_zone`. A run counts on the day on which it finished, an
  event on the day on which it happened. The column `day` names exceptions.
* **Grain**: the columns whose values together are different in each row of a table.
* **Numbers can be summed** over days and all other columns. Percentiles cannot: tables of buckets
  count durations by size, and views compute the percentiles of a period from them, at most 1.6 %
  off. The percentiles in tables are exact.
* **Cost** is what the providers reported. Tables have millionths of a dollar as integers
  (`micro-USD`), whose sums are exact. Views have dollars.
* **Times** are milliseconds since 1970, UTC. **Durations** are milliseconds, and 0 if the clock was
  set back in between.
* **Filters** select rows of the tables before a view is computed. A table without the column of a
  filter is not filtered by it.
* **Retention**: the database deletes runs after `attempt_days` and events after `event_days`. The
  reports keep what they have copied. The first run on an old database finds a year of runs, but
  only a month of events.

A package can [add a report](../how-to/add-a-report.md).
"""


def describe() -> str:
    """Every built-in report, the meaning of its tables, and its views."""
    reports = [load_report(name) for name in REPORTS.built_in]
    lines = [BEGIN, "| report | question |", "|---|---|"]
    lines += [f"| [{each.name}](#{each.name}) | {each.question} |" for each in reports]
    for each in reports:
        lines += _report(each)
    return "\n".join(lines) + "\n"


def _report(report: Report) -> list[str]:
    filters = " ".join(f"`--{each}`" for each in ("since", "until", *filters_of(report)))
    facts = " and ".join(f"`{each}`" for each in report.facts)
    lines = ["", f"## {report.name}", "", report.question, ""]
    lines += [f"Computed from the facts {facts}. Filters: {filters}."]
    for table in report.tables:
        lines += _table(table)
    lines += ["", f"### Views of {report.name}", "", "| view | what it shows | chart |"]
    lines += ["|---|---|---|", *map(_view, report.views)]
    stored = {each.name for table in report.tables for each in table.columns}
    shown = {each.name: each for view in report.views for each in view.columns}
    computed = [each for each in shown.values() if each.name not in stored]
    if computed:
        lines += ["", "Columns of views that are in no table:", "", *_columns(computed)]
    return lines


def _table(table: Table) -> list[str]:
    grain = ", ".join(f"`{each}`" for each in table.grain)
    return ["", f"### Table {table.name}", "", f"Grain: {grain}.", "", *_columns(table.columns)]


def _columns(columns: Iterable[Column]) -> list[str]:
    return [
        "| column | type | unit | meaning |",
        "|---|---|---|---|",
        *(
            f"| `{each.name}` | {each.type} | {_unit(each.unit)} | {each.description} |".replace(
                "|  |", "| |"
            )
            for each in columns
        ),
    ]


def _unit(unit: Unit | None) -> str:
    return {None: "", Unit.TIME: "ms since 1970", Unit.SHARE: "0 to 1"}.get(unit, unit or "")


def _view(view: View) -> str:
    columns = ", ".join(f"`{each.name}`" for each in view.columns)
    return f"| `{view.name}` | {view.title}: {columns} | {_chart(view.chart)} |"


def _chart(chart: Chart | None) -> str:
    if chart is None:
        return "none"
    values = chart.y if chart.kind != "heatmap" else (chart.series or "",)
    drawn = ", ".join(f"`{each}`" for each in values)
    by = [chart.x, *(chart.y if chart.kind == "heatmap" else filter(None, [chart.series]))]
    return f"{chart.kind} of {drawn} by {' and '.join(f'`{each}`' for each in by)}"
