"""Runs of the job with the session of the tests, and what is on the disk after them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bullpen.core.store.base import Store
from bullpen.reports import Report
from bullpen.reports.job.parquet import read_parquet
from bullpen.reports.job.progress import Outcome, Tell
from bullpen.reports.job.run import Request, SparkFactory, run_job
from bullpen.reports.manifest import Manifest, read_manifest
from tests.reports.job.facts import BOTH

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Results = dict[str, list[tuple[Any, ...]]]


def shared(spark: SparkSession) -> SparkFactory:
    """Gives every run this session."""
    return lambda small: nullcontext(spark)


def no_session(small: bool) -> AbstractContextManager[SparkSession]:
    """For runs that may not start Spark."""
    raise AssertionError("Spark was started")


def run(
    store: Store,
    spark: SparkSession | None,
    *,
    reports: Sequence[Report] = BOTH,
    tell: Tell = lambda _: None,
    **request: Any,  # noqa: ANN401 - the fields of a Request
) -> Outcome:
    """A run of the job; without a session it may not need one."""
    factory = no_session if spark is None else shared(spark)
    return run_job(store, factory, Request(**request), tell=tell, reports=reports)


def manifest(store: Store) -> Manifest:
    """The manifest of the last run."""
    found = read_manifest(store.settings.reports)
    assert found is not None
    return found


def results(store: Store) -> Results:
    """All rows of each table, in an order of their own."""
    return {
        table: sorted(
            (
                tuple(row.values())
                for file in files
                for row in read_parquet(store.settings.reports / file.name).to_pylist()
            ),
            key=repr,
        )
        for table, files in manifest(store).results.items()
    }


def fact_files(store: Store, table: str) -> list[Path]:
    """The files of a table that count."""
    return [store.settings.reports / each.name for each in manifest(store).facts[table].files]


def files_on_disk(store: Store) -> set[str]:
    """Every file that runs wrote."""
    top = store.settings.reports
    return {
        str(each.relative_to(top))
        for kind in ("facts", "results")
        for each in (top / kind).rglob("*")
        if each.is_file()
    }


def recomputed(store: Store, spark: SparkSession, reports: Sequence[Report] = BOTH) -> Results:
    """What a run gives that begins with an empty directory."""
    run(store, spark, reports=reports, again=True)
    return results(store)
