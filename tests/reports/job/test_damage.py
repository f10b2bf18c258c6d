"""What is missing, damaged, full or in use: a clear error, and the reports stay."""

from __future__ import annotations

import random
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bullpen.core.errors import (
    ReportsDamaged,
    ReportsError,
    ReportsRunning,
    StoreFull,
    StoreReplaced,
)
from bullpen.core.files import file_lock
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.reports.detached_run import RUN_LOCK
from bullpen.reports.job import upkeep
from bullpen.reports.job.progress import Progress, Step, Tell
from bullpen.reports.manifest import MANIFEST
from tests.reports.job.facts import SPRING, Run, write_history, write_messages, write_runs
from tests.reports.job.jobs import fact_files, files_on_disk, manifest, recomputed, results, run
from tests.stores import FakeClock, Stores

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def kind() -> str:
    return "sqlite"


@pytest.fixture
def settings(stores: Stores, kind: str) -> Settings:
    return stores.settings(kind, time_zone="UTC")


@pytest.fixture
def filled(store: Store, spark: SparkSession) -> Store:
    """A store whose reports are up to date."""
    write_history(store, random.Random(5), SPRING, 20)
    run(store, spark)
    return store


def cut(path: Path) -> None:
    """Make a file shorter."""
    path.write_bytes(path.read_bytes()[:-20])


def flip(path: Path) -> None:
    """Change what is in a file, and not its size."""
    data = bytearray(path.read_bytes())
    data[20:60] = bytes(each ^ 0xFF for each in data[20:60])
    path.write_bytes(data)


def result_file(store: Store, table: str) -> Path:
    """The file of a table's newest month."""
    return store.settings.reports / manifest(store).results[table][-1].name


@pytest.mark.parametrize("harm", [cut, flip, Path.unlink])
def test_damaged_files_are_made_again(
    filled: Store, spark: SparkSession, harm: Callable[[Path], None]
) -> None:
    harm(fact_files(filled, "attempts")[0])
    harm(fact_files(filled, "events")[-1])
    harm(result_file(filled, "writers"))
    write_history(filled, random.Random(6), SPRING, 10)
    run(filled, spark)
    assert results(filled) == recomputed(filled, spark)


def test_damaged_facts_that_the_store_no_longer_has_are_an_error(
    filled: Store, spark: SparkSession
) -> None:
    before = results(filled)
    file = fact_files(filled, "attempts")[0]
    saved = file.read_bytes()
    cut(file)
    with filled.write() as tx:
        tx.fetch("DELETE FROM attempts WHERE id < 15")
    write_messages(filled, [SPRING])
    with pytest.raises(ReportsDamaged, match=r"no longer has \d+ rows? of it") as caught:
        run(filled, spark)
    assert "--again" in caught.value.hint
    assert results(filled) == before
    file.write_bytes(saved)
    run(filled, spark)
    assert results(filled) != before


def test_a_damaged_manifest_is_an_error_and_again_replaces_it(
    filled: Store, spark: SparkSession
) -> None:
    before = results(filled)
    (filled.settings.reports / MANIFEST).write_text('{"format": 1, "store"')
    with pytest.raises(ReportsDamaged, match="is damaged"):
        run(filled, spark)
    assert recomputed(filled, spark) == before


@contextmanager
def full_disk_from(step: Step) -> Iterator[Tell]:
    """From this step of a run on, this process can write no more than 100 bytes into a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def tell(progress: Progress) -> None:
        if progress.step is step:
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))

    try:
        yield tell
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


# SQLite would need to write as well.
@pytest.mark.parametrize("kind", [pytest.param("postgresql", marks=pytest.mark.postgres)])
def test_a_full_disk_is_an_error_and_the_reports_stay(filled: Store, spark: SparkSession) -> None:
    before = results(filled)
    write_history(filled, random.Random(9), SPRING, 5)
    for step in (Step.LANDING, Step.COMPUTING):
        with full_disk_from(step) as tell, pytest.raises(ReportsError, match="no space left"):
            run(filled, spark, tell=tell)
        assert results(filled) == before
        assert files_on_disk(filled) == {*upkeep.list_files(manifest(filled))}
    run(filled, spark)
    assert results(filled) == recomputed(filled, spark)


def test_a_run_leaves_the_reserve_of_the_disk_to_the_queue(
    filled: Store, stores: Stores, clock: FakeClock
) -> None:
    before = results(filled)
    write_messages(filled, [SPRING])
    greedy = replace(filled.settings, free_bytes_floor=1 << 60)
    with stores.opened(greedy, clock) as other, pytest.raises(StoreFull, match="are reserved"):
        run(other, None)
    assert results(filled) == before


def test_two_runs_at_once_are_refused(filled: Store) -> None:
    with file_lock(filled.settings.reports / RUN_LOCK), pytest.raises(ReportsRunning):
        run(filled, None)


def replace_history(store: Store) -> None:
    """As after the restore of an older backup: the last rows are others."""
    with store.write() as tx:
        tx.fetch("DELETE FROM attempts WHERE id > 15")
    write_history(store, random.Random(8), SPRING + 1, 10)


def forget_newest(store: Store) -> None:
    """As after the restore of an older backup: the last rows are missing."""
    with store.write() as tx:
        tx.fetch("DELETE FROM attempts WHERE id > 15")


def change_identity(store: Store) -> None:
    """As with the database of another installation."""
    with store.write() as tx:
        tx.fetch("UPDATE store_identity SET id = 'another'")


@pytest.mark.parametrize("change", [replace_history, forget_newest, change_identity])
def test_another_history_is_refused_and_again_starts_with_it(
    filled: Store, spark: SparkSession, change: Callable[[Store], None]
) -> None:
    before = results(filled)
    change(filled)
    with pytest.raises(StoreReplaced) as caught:
        run(filled, None)
    assert "bullpen report run --again" in caught.value.hint
    assert results(filled) == before
    run(filled, spark, again=True)
    assert sum(row[-1] for row in results(filled)["runs"]) == manifest(filled).facts[
        "attempts"
    ].files[-1].rows + sum(each.rows for each in manifest(filled).facts["attempts"].files[:-1])


def test_facts_that_retention_deleted_stay_in_the_reports(
    filled: Store, clock: FakeClock, spark: SparkSession
) -> None:
    before = results(filled)
    with filled.write() as tx:
        tx.fetch("DELETE FROM attempts WHERE id < 20")
        tx.fetch("DELETE FROM events WHERE id < 40")
    write_runs(filled, [Run(SPRING, SPRING + 1)])
    run(filled, spark)
    after = results(filled)
    assert sum(row[-1] for row in after["runs"]) == 21
    assert after["writers"] == before["writers"]
