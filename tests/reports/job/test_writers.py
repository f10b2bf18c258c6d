"""Runs of the job while others write: no fact is missed, and none is landed twice."""

from __future__ import annotations

import threading
import time
from itertools import count
from typing import TYPE_CHECKING

import pytest

from bullpen.core.models import EVENTS
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.reports.job.parquet import read_parquet
from tests.reports.job.facts import SPRING, WRITERS, Run, write_messages, write_runs
from tests.reports.job.jobs import fact_files, manifest, results, run
from tests.stores import Stores

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WRITERS_AT_ONCE = 8
RUNS_AT_ONCE = 3


@pytest.fixture
def settings(stores: Stores, kind: str) -> Settings:
    return stores.settings(kind, time_zone="UTC")


def landed_ids(store: Store, table: str) -> list[int]:
    """The ids in the files that count."""
    return sorted(
        each for file in fact_files(store, table) for each in read_parquet(file)["id"].to_pylist()
    )


def stored_ids(store: Store, table: str, where: str = "true") -> list[int]:
    """The ids in the store."""
    with store.engine.connect() as connection:
        rows = connection.exec_driver_sql(f"SELECT id FROM {table} WHERE {where} ORDER BY id")
        return [row[0] for row in rows]


def test_beside_eight_writers_no_fact_is_missed_or_landed_twice(
    store: Store, spark: SparkSession, settings: Settings, stores: Stores
) -> None:
    stop, numbers, failures = threading.Event(), count(), list[BaseException]()

    def write(number: int) -> None:
        try:
            with stores.opened(settings) as mine:
                while not stop.is_set():
                    at = SPRING + next(numbers)
                    with mine.engine.begin() as connection:
                        values = {"type": "message_enqueued", "created_at": at, "data": "{}"}
                        connection.execute(EVENTS.insert(), [values] * (1 + number % 3))
                        if number % 2 and mine.dialect == "postgresql":
                            time.sleep(0.02)  # the id is drawn, and not yet committed
                    write_runs(mine, [Run(at, at)])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=[each]) for each in range(WRITERS_AT_ONCE)]
    for each in threads:
        each.start()
    landed: list[int] = []
    try:
        # A run that finds nothing new is over before the writers have begun.
        while not failures and sum(each > 0 for each in landed) < RUNS_AT_ONCE:
            landed.append(run(store, spark, reports=(WRITERS,)).landed["events"])
    finally:
        stop.set()
        for each in threads:
            each.join()
    assert failures == []
    run(store, spark, reports=(WRITERS,))
    for table in ("events", "attempts"):
        assert landed_ids(store, table) == stored_ids(store, table)
    total = sum(row[-1] for row in results(store)["writers"])
    assert total == len(stored_ids(store, "events"))


@pytest.mark.parametrize("kind", [pytest.param("postgresql", marks=pytest.mark.postgres)])
def test_a_transaction_that_stays_open_is_named_and_the_rest_is_computed(
    store: Store, spark: SparkSession, settings: Settings, stores: Stores
) -> None:
    write_messages(store, [SPRING])
    run(store, spark, reports=(WRITERS,))
    with stores.opened(settings) as other, other.engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO events (type, data, created_at) VALUES ('message_enqueued', '{}', 1)"
        )
        write_messages(store, [SPRING + 1])
        write_runs(store, [Run(SPRING, SPRING)])
        outcome = run(store, spark, reports=(WRITERS,))
        assert outcome.waiting_for == ("events",)
        assert (outcome.landed["events"], outcome.landed["attempts"]) == (0, 1)
        assert manifest(store).facts["events"].upto == 1
    run(store, spark, reports=(WRITERS,))
    assert landed_ids(store, "events") == stored_ids(store, "events")
