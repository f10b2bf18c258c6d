"""Runs of the job one after the other give what one run gives."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from bullpen.core.clock import DAY, HOUR
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from tests.reports.job.facts import SPRING, write_history
from tests.reports.job.jobs import manifest, recomputed, results, run
from tests.stores import FakeClock, Stores

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def settings(stores: Stores, kind: str) -> Settings:
    return stores.settings(kind, time_zone="Europe/Berlin")


@pytest.mark.one_store
def test_increments_give_the_same_as_one_run(
    store: Store, clock: FakeClock, spark: SparkSession
) -> None:
    chance = random.Random(7)
    at = SPRING
    for _ in range(4):
        write_history(store, chance, at, 25)
        run(store, spark)
        at += chance.choice([0, HOUR, DAY, -2 * DAY])
    found = results(store)
    assert found == recomputed(store, spark)
    assert sum(row[-1] for row in found["runs"]) == 100
    assert sum(row[-1] for row in found["writers"]) == 100
    assert {*found} == {"runs", "busy", "began", "writers"}


def test_nothing_new_starts_no_spark(store: Store, clock: FakeClock, spark: SparkSession) -> None:
    assert not run(store, None).changed
    write_history(store, random.Random(1), SPRING, 5)
    assert run(store, spark).changed
    before = manifest(store)
    clock.advance(HOUR)
    outcome = run(store, None)
    assert not outcome.changed
    assert outcome.covers_until == clock.now()
    after = manifest(store)
    assert (after.run, after.results) == (before.run, before.results)


def test_events_that_no_report_reads_start_no_spark(store: Store, spark: SparkSession) -> None:
    from tests.reports.job.facts import write_messages

    write_history(store, random.Random(1), SPRING, 5)
    run(store, spark)
    before = manifest(store).facts["events"].upto
    write_messages(store, [SPRING], "agent_progress")
    assert not run(store, None).changed
    assert manifest(store).facts["events"].upto >= before


@pytest.mark.one_store
def test_another_time_zone_needs_no_store(
    store: Store, clock: FakeClock, spark: SparkSession, stores: Stores
) -> None:
    write_history(store, random.Random(2), SPRING, 30)
    run(store, spark)
    utc = replace(store.settings, time_zone="UTC")
    with stores.opened(utc, clock) as later:
        expected = recomputed(later, spark)
    run(store, spark, again=True)
    assert results(store) != expected
    with store.write() as tx:
        # Not the last row, by which the store is recognised.
        tx.fetch("DELETE FROM attempts WHERE id < 30")
    with stores.opened(utc, clock) as later:
        run(later, spark)
        assert results(later) == expected
