"""Runs transforms and views on facts that a test writes down.

A test gives only the columns that matter; the rest have a default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from bullpen.reports.expressions import local_day, local_time
from bullpen.reports.facts.tables import ATTEMPTS, EVENTS, FactTable
from bullpen.reports.report import Facts, Report, Table
from bullpen.reports.schema import Type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Value = str | int | float | None
Row = Mapping[str, Value]

SPARK_TYPES = {Type.TEXT: "string", Type.INTEGER: "bigint", Type.NUMBER: "double"}
ZONE = "Europe/Berlin"

RUN: Row = {
    "messages": 1,
    "agent": "coder",
    "outcome": "completed",
    "input_tokens": 0,
    "output_tokens": 0,
    "cost": 0.0,
    "hop": 0,
    "channel": "slack",
    "sender": "Ann",
    "sender_id": "U1",
}
EVENT: Row = {"type": "message_enqueued", "agent": "coder", "channel": "slack"}


def at(text: str, zone: str = ZONE) -> int:
    """The milliseconds of a local time such as `2026-11-19 23:59:59`."""
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp() * 1000)


def given_facts(
    spark: SparkSession,
    attempts: Sequence[Row] = (),
    events: Sequence[Row] = (),
    zone: str = ZONE,
) -> Facts:
    """Facts with these rows; their ids are their places in the list."""
    return Facts(
        attempts=_frame(spark, ATTEMPTS, [{**RUN, **each} for each in attempts], zone),
        events=_frame(spark, EVENTS, [{**EVENT, **each} for each in events], zone),
        zone=zone,
    )


def rows_of(table: Table, facts: Facts) -> list[dict[str, object]]:
    """The rows of a table, in the order of its grain, which is unique. NULL is first."""
    rows = [each.asDict() for each in table.transform(facts).collect()]
    keys = [tuple(row[each] for each in table.grain) for row in rows]
    assert len({*keys}) == len(keys), table.name
    return sorted(rows, key=lambda row: [str(row[each] or "") for each in table.grain])


def answer(report: Report, view: str, facts: Facts) -> list[tuple[object, ...]]:
    """The rows of a view."""
    import duckdb  # not above: see `read/database.py`

    with duckdb.connect() as database:
        sql = next(each.sql for each in report.views if each.name == view)
        for table in report.tables:
            if table.name in sql:
                database.register(table.name, table.transform(facts).toArrow())
        return database.execute(sql).fetchall()


def _frame(spark: SparkSession, table: FactTable, rows: Sequence[Row], zone: str) -> DataFrame:
    names = [each.name for each in table.landed_columns]
    for row in rows:
        assert {*row} <= {*names}, row
    schema = ", ".join(f"`{each.name}` {SPARK_TYPES[each.type]}" for each in table.landed_columns)
    values = [
        tuple({"id": number, **row}.get(name) for name in names) for number, row in enumerate(rows)
    ]
    from bullpen.reports import functions as F  # pyspark is imported here

    frame = spark.createDataFrame(values, schema)
    return frame.select(
        "*",
        local_day(table.time, zone).alias("day"),
        F.hour(local_time(table.time, zone)).alias("hour"),
    )
