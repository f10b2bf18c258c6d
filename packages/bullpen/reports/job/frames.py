"""Frames: the landed facts as Spark's DataFrames, with the local day and hour of each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bullpen.reports import functions as F
from bullpen.reports.expressions import local_time
from bullpen.reports.facts.tables import ATTEMPTS, EVENTS, FactTable
from bullpen.reports.job.days import Days
from bullpen.reports.manifest import FactFile
from bullpen.reports.report import Facts
from bullpen.reports.schema import Schema, Type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LANDED_TABLES = (ATTEMPTS, EVENTS)

_TYPES = {
    Type.TEXT: "STRING",
    Type.INTEGER: "BIGINT",
    Type.NUMBER: "DOUBLE",
    Type.BOOLEAN: "BOOLEAN",
    Type.DATE: "DATE",
}


def open_facts(
    spark: SparkSession, directory: Path, files: Mapping[str, tuple[FactFile, ...]], days: Days
) -> Facts:
    """The facts that the results of these days depend on."""
    attempts, events = (
        _open_table(spark, directory, each, files.get(each.name, ()), days)
        for each in LANDED_TABLES
    )
    return Facts(attempts=attempts, events=events, zone=days.zone)


def _open_table(
    spark: SparkSession,
    directory: Path,
    table: FactTable,
    files: tuple[FactFile, ...],
    days: Days,
) -> DataFrame:
    schema = _schema(table.landed_columns)
    paths = [f"file://{(directory / each.name).absolute()}" for each in days.select_files(files)]
    read = spark.read.schema(schema)
    rows = read.parquet(*paths) if paths else spark.createDataFrame([], schema)
    wanted = days.of_facts(table.name)
    if wanted is not None:
        rows = rows.where(wanted)
    at = local_time(table.time, days.zone)
    return rows.select("*", F.to_date(at).alias("day"), F.hour(at).alias("hour"))


def _schema(columns: Schema) -> str:
    return ", ".join(f"`{each.name}` {_TYPES[each.type]}" for each in columns)
