"""reports_source: Spark reads attempts by the data source, and bare cursors of ADBC read them."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from bullpen.ops.demo.plan import HistoryPlan
from bullpen.ops.demo.write import write_history
from bullpen.reports.facts.position import cut_ranges, last_id
from bullpen.reports.facts.read import IdRange
from bullpen.reports.facts.tables import ATTEMPTS
from tests.bench.measure import Measure, Unit
from tests.bench.rounds import interleave, ratios
from tests.bench.section import Bench, Section
from tests.bench.stores import sqlite_file

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

UNTIL = 1_790_000_000_000
BARE_BATCH_ROWS = "16384"

COLUMNS = {
    "all columns": tuple(each.name for each in ATTEMPTS.columns),
    "five columns": ("id", "agent", "outcome", "cost", "finished_at"),
}


@dataclass(frozen=True, slots=True)
class Reading:
    """What it took to read all rows."""

    seconds: float
    cpu_seconds: float


def reports_source(bench: Bench) -> Section:
    """The rows a second that Spark gets, as a share of what the driver alone gives."""
    from bullpen.reports.spark.session import open_session
    from bullpen.reports.spark.source import register

    settings = bench.stores.settings("sqlite")
    plan = HistoryPlan.from_settings(
        settings, seed=1, attempts=bench.scale.source_attempts, days=30, until=UNTIL
    )
    rows = write_history(settings, plan, lambda _: None).rows["attempts"]
    with bench.stores.opened(settings) as store:
        ranges = cut_ranges(store, ATTEMPTS, 0, last_id(store, ATTEMPTS))
    measures: list[Measure] = []
    checks: dict[str, bool] = {}
    count = os.cpu_count() or 1
    context = multiprocessing.get_context("forkserver")
    with (
        ProcessPoolExecutor(count, mp_context=context) as pool,
        open_session(settings) as spark,
    ):
        register(spark)
        list(pool.map(time.sleep, [0.5] * count))  # all are there from now on
        for name, columns in COLUMNS.items():
            turns: dict[str, Callable[[], Reading]] = {
                "bare": BareTurn(pool, sqlite_file(settings), columns, ranges, rows),
                "spark": SparkTurn(spark, settings.home, columns),
            }
            results = interleave(turns, bench.scale.source_rounds, warm_up=1)
            measures += _measures(name, rows, results)
            frame = load(spark, settings.home, columns)
            checks[f"{name}: Spark read every row"] = frame.count() == rows
    return Section(measures, checks)


def load(spark: SparkSession, home: Path, columns: Sequence[str]) -> DataFrame:
    """The attempts as a DataFrame."""
    reader = spark.read.format("bullpen").options(table="attempts", home=str(home))
    return reader.option("columns", ",".join(columns)).load()


class SparkTurn:
    """Spark reads all rows and drops them."""

    def __init__(self, spark: SparkSession, home: Path, columns: Sequence[str]) -> None:
        self._spark = spark
        self._home = home
        self._columns = columns

    def __call__(self) -> Reading:
        cpu, began = _cpu_of_all(), time.perf_counter()
        frame = load(self._spark, self._home, self._columns)
        frame.write.format("noop").mode("overwrite").save()
        return Reading(time.perf_counter() - began, _cpu_of_all() - cpu)


class BareTurn:
    """As many processes as Spark has threads read the same ranges, without casts."""

    def __init__(
        self,
        pool: ProcessPoolExecutor,
        file: Path,
        columns: Sequence[str],
        ranges: Sequence[IdRange],
        rows: int,
    ) -> None:
        self._pool = pool
        self._given = [(file, tuple(columns), each) for each in ranges]
        self._rows = rows

    def __call__(self) -> Reading:
        began = time.perf_counter()
        parts = list(self._pool.map(read_bare, self._given))
        assert sum(rows for rows, _ in parts) == self._rows
        return Reading(time.perf_counter() - began, sum(cpu for _, cpu in parts))


def read_bare(given: tuple[Path, Sequence[str], IdRange]) -> tuple[int, float]:
    """Read a range by ADBC alone; gives the rows and the processor time."""
    from adbc_driver_sqlite import dbapi

    file, columns, ids = given
    began = time.process_time()
    sql = f"SELECT {', '.join(columns)} FROM attempts WHERE id BETWEEN {ids.first} AND {ids.last}"
    with dbapi.connect(f"file:{file}?mode=ro") as connection, connection.cursor() as cursor:
        options = {"adbc.sqlite.query.batch_rows": BARE_BATCH_ROWS}
        cursor.adbc_statement.set_options(**options)
        cursor.execute(sql)
        rows = sum(each.num_rows for each in cursor.fetch_record_batch())
    return rows, time.process_time() - began


def _cpu_of_all() -> float:
    """The processor time of this process, of the JVM and of Spark's workers, also of ended ones."""
    me = psutil.Process()
    total = 0.0
    for each in (me, *me.children(recursive=True)):
        try:
            times = each.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def _measures(name: str, rows: int, results: dict[str, list[Reading]]) -> list[Measure]:
    bare, spark = results["bare"], results["spark"]
    title = f"data source, {name}"
    return [
        Measure(f"{title}: rows", Unit.RATE, [rows / each.seconds for each in spark]),
        Measure(
            f"{title}: rows/s : bare cursor",
            Unit.RATIO,
            ratios([each.seconds for each in bare], [each.seconds for each in spark]),
        ),
        Measure(
            f"{title}: rows per CPU second : bare cursor",
            Unit.RATIO,
            ratios([each.cpu_seconds for each in bare], [each.cpu_seconds for each in spark]),
        ),
    ]
