"""The tables of all reports are those that plain SQL computes from the store, row for row."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from bullpen.core.registry import REPORTS
from bullpen.core.store.base import Store
from bullpen.reports.built_in.latency import SHARES
from bullpen.reports.read.answer import find_view, read_view
from bullpen.reports.report import load_report
from tests.reports.histories import PLACES, History, histories, write
from tests.reports.job.jobs import Results, recomputed, results, run
from tests.reports.oracle_views import LATENCY_VIEWS, VIEWS
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

# A time-out in the middle of a call would leave Spark's connection with an answer too many.
long = pytest.mark.timeout(600 * EXAMPLES)

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


def in_view(store: Store, report: str, view: str) -> Rows:
    """The rows of a view, as people read them."""
    found = load_report(report)
    answer = read_view(store.settings.reports, found, find_view(found, view), limit=10_000)
    return ordered([tuple(_rounded(each) for each in row) for row in answer.rows])


def _rounded(value: object) -> object:
    return float(f"{value:.12g}") if isinstance(value, float) else value


def wrong_views(store: Store, oracle: Oracle) -> dict[str, tuple[Rows, Rows]]:
    """The views that differ from what SQL computes."""
    found, expected = {}, {}
    for (report, view), sql in VIEWS.items():
        found[f"{report} {view}"] = in_view(store, report, view)
        rows = [tuple(_rounded(each) for each in row) for row in oracle.rows(sql)]
        expected[f"{report} {view}"] = ordered(rows)
    return differences(found, expected)


def wrong_percentiles(store: Store, oracle: Oracle) -> list[tuple[str, object, object]]:
    """The percentiles of days and weeks that are further off than a bucket is wide."""
    wrong: list[tuple[str, object, object]] = []
    number = len(SHARES)
    for view, sql in LATENCY_VIEWS.items():
        found = {row[:-number]: row[-number:] for row in in_view(store, "latency", view)}
        exact = {row[:-number]: row[-number:] for row in oracle.rows(sql)}
        assert {*found} == {*exact}
        wrong += [
            (view, found[key], exact[key])
            for key in found
            if any(
                abs(ours - true) * 64 > true
                for ours, true in zip(found[key], exact[key], strict=True)
            )
        ]
    return wrong


def check_history(
    stores: Stores, kind: str, spark: SparkSession, history: History, increments: int
) -> None:
    made = stores.settings(kind, time_zone=history.zone)
    with stores.opened(made) as store:
        for part in history.parts(increments):
            write(store, part)
            run(store, spark, reports=BUILT_IN)
        oracle = Oracle(store, history.zone)
        expected = by_sql(oracle)
        assert not differences(results(store), expected)
        assert all(expected.values())
        assert not wrong_views(store, oracle)
        assert not wrong_percentiles(store, oracle)
        if increments > 1:
            assert not differences(recomputed(store, spark, BUILT_IN), expected)


def test_every_table_is_checked() -> None:
    assert {*TABLES} == {table.name for report in BUILT_IN for table in report.tables}


@long
@some
@given(history=histories())
def test_increments_and_one_run_give_what_sql_gives(
    stores: Stores, spark: SparkSession, history: History
) -> None:
    check_history(stores, "sqlite", spark, history, INCREMENTS)


@pytest.mark.postgres
@long
@some
@given(history=histories(PLACES[::-1] if EXAMPLES > 1 else PLACES[1:]))
def test_one_run_gives_what_sql_gives_on_postgresql(
    stores: Stores, spark: SparkSession, history: History
) -> None:
    check_history(stores, "postgresql", spark, history, 1)
