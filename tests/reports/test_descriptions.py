"""What people read about reports: each column is described, and names of tables are unique."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from bullpen.core.registry import REPORTS
from bullpen.reports.report import Report, Table, View, load_report
from bullpen.reports.schema import Column, Type, Unit


def columns(report: Report) -> Iterator[tuple[str, Column]]:
    parts: list[Table | View] = [*report.tables, *report.views]
    for each in parts:
        for column in each.columns:
            yield f"{report.name}.{each.name}.{column.name}", column


def test_every_column_of_every_table_and_view_is_described() -> None:
    wrong = []
    for report in map(load_report, REPORTS.built_in):
        assert report.question.endswith("?")
        for name, column in columns(report):
            has_unit = column.type in (Type.INTEGER, Type.NUMBER) or column.unit is None
            is_exact = column.unit is not Unit.DOLLARS or column.type is Type.NUMBER
            if not (column.description.endswith(".") and has_unit and is_exact):
                wrong.append(name)
    assert not wrong


def test_no_two_tables_have_the_same_name_and_no_two_views_of_a_report() -> None:
    reports = [load_report(each) for each in REPORTS.built_in]
    tables = Counter(table.name for report in reports for table in report.tables)
    views = Counter((report.name, view.name) for report in reports for view in report.views)
    assert not [name for name, count in (tables + views).items() if count > 1]
