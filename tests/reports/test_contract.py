"""Every built-in report keeps the contract: tables with the columns that it declares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bullpen.core.registry import REPORTS
from bullpen.reports.facts.tables import ATTEMPTS, EVENTS, FactTable
from bullpen.reports.report import Facts, Report, Table, load_report
from bullpen.reports.schema import Schema, Type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SPARK_TYPES = {
    Type.TEXT: "string",
    Type.INTEGER: "bigint",
    Type.NUMBER: "double",
    Type.BOOLEAN: "boolean",
    Type.DATE: "date",
}
DUCKDB_TYPES = {**SPARK_TYPES, Type.TEXT: "varchar"}
ALLOWED = {"int": "bigint", "tinyint": "bigint", "smallint": "bigint", "float": "double"}
"""Types that the job converts."""


def no_facts(spark: SparkSession) -> Facts:
    """Frames without rows, with the columns that a transform gets."""

    def frame(table: FactTable) -> DataFrame:
        columns = [f"`{each.name}` {SPARK_TYPES[each.type]}" for each in table.landed_columns]
        return spark.createDataFrame([], ", ".join([*columns, "day date", "hour int"]))

    return Facts(attempts=frame(ATTEMPTS), events=frame(EVENTS), zone="Europe/Berlin")


def columns_of(frame: DataFrame) -> dict[str, str]:
    return {
        each.name: ALLOWED.get(each.dataType.simpleString(), each.dataType.simpleString())
        for each in frame.schema
    }


def declared(columns: Schema) -> dict[str, str]:
    return {each.name: SPARK_TYPES[each.type] for each in columns}


def wrong_tables(reports: list[Report], facts: Facts) -> list[str]:
    return [
        f"{report.name}: {table.name}"
        for report in reports
        for table in report.tables
        if columns_of(table.transform(facts)) != declared(table.columns)
        or table.grain[0] != "day"
        or not {*table.grain} <= {each.name for each in table.columns}
    ]


def create(tables: tuple[Table, ...]) -> str:
    return "; ".join(
        f"CREATE TABLE {table.name}"
        f" ({', '.join(f'{each.name} {DUCKDB_TYPES[each.type]}' for each in table.columns)})"
        for table in tables
    )


def wrong_views(reports: list[Report]) -> list[str]:
    import duckdb  # not above: see `read/database.py`

    wrong = []
    for report in reports:
        for view in report.views:
            with duckdb.connect() as database:
                database.execute(create(report.tables))
                names = [each[0] for each in database.execute(view.sql).description or ()]
            drawn = () if view.chart is None else (view.chart.x, *view.chart.y, view.chart.series)
            missing = {each for each in drawn if each} - {*names}
            if names != [each.name for each in view.columns] or missing:
                wrong.append(f"{report.name}: {view.name}: {names} {missing}")
    return wrong


def test_every_table_and_view_has_the_columns_that_it_declares(spark: SparkSession) -> None:
    reports = [load_report(name) for name in REPORTS.built_in]
    assert not wrong_tables(reports, no_facts(spark))
    assert not wrong_views(reports)
    for each in reports:
        assert each.tables[0].name == each.name
