"""What a run does besides the new facts: other code, other days, other files."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

import pytest

from bullpen.core.clock import DAY, HOUR
from bullpen.core.errors import SparkFailed
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.reports import Facts, Report, Table, Type
from bullpen.reports import functions as F
from tests.reports.job.facts import (
    BOTH,
    DAY_COLUMN,
    RUNS,
    SPRING,
    WRITERS,
    Run,
    column,
    finished,
    make_report,
    write_history,
    write_messages,
    write_runs,
)
from tests.reports.job.jobs import files_on_disk, manifest, recomputed, results, run
from tests.stores import FakeClock, Stores

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def settings(stores: Stores) -> Settings:
    return stores.settings("sqlite", time_zone="UTC")


@pytest.fixture
def filled(store: Store, clock: FakeClock, spark: SparkSession) -> Store:
    """A store whose reports are up to date."""
    clock.set_by(SPRING - clock.now())
    write_history(store, random.Random(5), SPRING, 20)
    run(store, spark)
    return store


def failing(facts: Facts) -> DataFrame:
    """A transform with a mistake."""
    return facts.attempts.groupBy("no_such_column").count()


def twice(facts: Facts) -> DataFrame:
    """A transform that gives each row twice."""
    rows = finished(facts)
    return rows.unionAll(rows)


def unnamed(facts: Facts) -> DataFrame:
    """A transform with another column than the declared one."""
    return facts.attempts.groupBy("day", "hour", "agent").agg(F.count("*").alias("count"))


def as_text(facts: Facts) -> DataFrame:
    """A transform with another type than the declared one."""
    return finished(facts).withColumn("runs", F.col("runs").cast("string"))


@pytest.mark.parametrize(
    ("transform", "error"),
    [
        (failing, "no_such_column"),
        (twice, "table runs: more than one row has day="),
        (unnamed, "table runs: column runs is missing, column count is not declared"),
        (as_text, "table runs: column runs is string, not int64"),
    ],
)
def test_a_report_that_fails_keeps_its_results_and_stops_no_other(
    filled: Store, spark: SparkSession, transform: Callable[[Facts], DataFrame], error: str
) -> None:
    before = results(filled)
    write_history(filled, random.Random(6), SPRING, 10)
    table = replace(RUNS.tables[0], transform=transform)
    outcome = run(filled, spark, reports=(replace(RUNS, tables=(table,)), WRITERS))
    (failed,) = outcome.failed
    assert failed.name == "runs"
    assert error in failed.error
    after = results(filled)
    assert after["runs"] == before["runs"]
    assert after["writers"] != before["writers"]
    assert manifest(filled).reports["runs"].error == failed.error
    run(filled, spark)
    assert not manifest(filled).reports["runs"].error
    assert results(filled) == recomputed(filled, spark)


def test_if_no_report_can_be_computed_the_run_fails(filled: Store, spark: SparkSession) -> None:
    before = manifest(filled)
    broken = [replace(each, tables=(replace(each.tables[0], transform=failing),)) for each in BOTH]
    with pytest.raises(SparkFailed, match="no report could be computed"):
        run(filled, spark, reports=broken)
    assert manifest(filled) == before


def only_first_hours(facts: Facts) -> DataFrame:
    """Other code of the same table."""
    return finished(facts).where(F.col("hour") < 12)


def test_a_report_is_computed_again_when_its_code_changes_and_goes_when_it_is_removed(
    filled: Store, spark: SparkSession
) -> None:
    changed = column("runs", Type.INTEGER)
    described = replace(changed, description="Something else.")
    columns = (*RUNS.tables[0].columns[:-1], described)
    table = replace(RUNS.tables[0], columns=columns, transform=only_first_hours)
    other = replace(RUNS, tables=(table,))
    run(filled, spark, reports=(other, WRITERS))
    found = results(filled)
    assert {*found} == {"runs", "writers"}
    assert {row[1] < 12 for row in found["runs"]} == {True}
    run(filled, spark, reports=(other,))
    assert {*results(filled)} == {"runs"}


def test_from_computes_these_days_again_and_no_others(filled: Store, spark: SparkSession) -> None:
    before = results(filled)
    days = sorted({row[0] for row in before["busy"]})
    landed = manifest(filled).facts
    outcome = run(filled, spark, since=days[-1])
    assert {each.days for each in outcome.reports} < {1, 2, 3}, "the newest days only"
    assert results(filled) == before
    assert manifest(filled).facts["attempts"].files == landed["attempts"].files
    assert run(filled, spark, since=date(2020, 1, 1)).changed
    assert results(filled) == before


def test_the_files_of_a_day_become_one_when_it_is_over(
    filled: Store, clock: FakeClock, spark: SparkSession
) -> None:
    for hour in range(3):
        write_runs(filled, [Run(SPRING, SPRING + hour * HOUR)])
        run(filled, spark)
    day = "2026-03-27"
    assert [each.date for each in manifest(filled).facts["attempts"].files].count(day) == 4
    before = results(filled)
    clock.advance(DAY)
    write_runs(filled, [Run(SPRING + 3 * DAY, SPRING + 3 * DAY)])
    run(filled, spark)
    (_,) = [each for each in manifest(filled).facts["attempts"].files if each.date == day]
    assert len([each for each in files_on_disk(filled) if f"attempts/date={day}" in each]) == 5, (
        "the others are kept"
    )
    after = results(filled)
    assert sum(row[-1] for row in after["runs"]) == sum(row[-1] for row in before["runs"]) + 1
    assert after == recomputed(filled, spark)


def test_replaced_files_are_kept_for_two_runs(filled: Store, spark: SparkSession) -> None:
    def touch() -> set[str]:
        write_messages(filled, [SPRING])
        run(filled, spark)
        return files_on_disk(filled)

    (first,) = [
        each.name for each in manifest(filled).results["writers"] if each.month == "2026-03"
    ]
    assert first in touch()
    assert first in touch()
    assert first not in touch()


def test_files_of_others_are_left_alone(filled: Store, spark: SparkSession) -> None:
    mine = filled.settings.reports / "results" / "writers" / "mine.csv"
    mine.write_text("a,b\n")
    stray = filled.settings.reports / "results" / "writers" / "month=2026-03" / "stray.parquet"
    stray.write_bytes(b"what a killed run leaves")
    run(filled, None)
    assert mine.exists()
    assert not stray.exists()


def test_the_directory_is_private(filled: Store) -> None:
    top = filled.settings.reports
    assert {each.stat().st_mode & 0o077 for each in (top, *top.rglob("*"))} == {0}


def reports_of_unknown_columns() -> Report:
    """A report without rows."""
    none = Table(
        name="none", grain=("day",), columns=(DAY_COLUMN, column("runs")), transform=no_rows
    )
    return make_report("none", none)


def no_rows(facts: Facts) -> DataFrame:
    """No rows."""
    return facts.attempts.where(F.lit(False)).groupBy("day").agg(F.count("*").alias("runs"))


def test_a_report_without_rows_has_no_file(filled: Store, spark: SparkSession) -> None:
    run(filled, spark, reports=(reports_of_unknown_columns(),))
    assert results(filled) == {}
    assert manifest(filled).reports["none"].covers_until
