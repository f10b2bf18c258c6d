"""The tables of all reports are those that plain SQL computes from the store, row for row."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from bullpen.core.registry import REPORTS
from bullpen.reports.report import load_report
from tests.reports.histories import PLACES, History, histories, write
from tests.reports.job.jobs import Results, recomputed, results, run
from tests.reports.oracles import TABLES, Oracle, Rows
from tests.stores import Stores

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = int(os.environ.get("REPORT_EXAMPLES", "1"))
"""The number of histories for each database. The first one is always the same."""

INCREMENTS = 2 if EXAMPLES == 1 else 10

some = settings(
    max_examples=EXAMPLES,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)

BUILT_IN = [load_report(name) for name in REPORTS.built_in]


def ordered(rows: Rows) -> Rows:
    return sorted(rows, key=repr)


def differences(found: Results, expected: Results) -> dict[str, tuple[Rows, Rows]]:
    """The tables that differ, with the rows that are too many and those that are missing."""
    return {
        name: (
            [each for each in found.get(name, []) if each not in expected.get(name, [])][:3],
            [each for each in expected.get(name, []) if each not in found.get(name, [])][:3],
        )
        for name in {*found, *expected}
        if found.get(name, []) != expected.get(name, [])
    }


def by_sql(oracle: Oracle) -> Results:
    """What every table must be."""
    names = [table.name for report in BUILT_IN for table in report.tables]
    return {name: ordered(oracle.table(name)) for name in names}


def check_history(
    stores: Stores, kind: str, spark: SparkSession, history: History, increments: int
) -> None:
    made = stores.settings(kind, time_zone=history.zone)
    with stores.opened(made) as store:
        for part in history.parts(increments):
            write(store, part)
            run(store, spark, reports=BUILT_IN)
        expected = by_sql(Oracle(store, history.zone))
        assert not differences(results(store), expected)
        assert all(expected.values())
        if increments > 1:
            assert not differences(recomputed(store, spark, BUILT_IN), expected)


def test_every_table_is_checked() -> None:
    assert {*TABLES} == {table.name for report in BUILT_IN for table in report.tables}


@some
@given(history=histories())
def test_increments_and_one_run_give_what_sql_gives(
    stores: Stores, spark: SparkSession, history: History
) -> None:
    check_history(stores, "sqlite", spark, history, INCREMENTS)


@pytest.mark.postgres
@some
@given(history=histories(PLACES[::-1] if EXAMPLES > 1 else PLACES[1:]))
def test_one_run_gives_what_sql_gives_on_postgresql(
    stores: Stores, spark: SparkSession, history: History
) -> None:
    check_history(stores, "postgresql", spark, history, 1)
