"""A run that is killed leaves the reports of before, and the next run does what it did not."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from bullpen.core.clock import DAY, HOUR
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.reports.job import upkeep
from bullpen.reports.job.progress import Progress, Step
from tests.cli.command import Bullpen
from tests.reports.conftest import ClassArchives
from tests.reports.job.facts import SPRING, write_history
from tests.reports.job.jobs import files_on_disk, manifest, recomputed, results, run
from tests.stores import FakeClock, Stores

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNT = 12


class Killed(BaseException):
    """Ends a run as SIGKILL does: nothing of ours catches it."""


@pytest.fixture
def settings(stores: Stores) -> Settings:
    return stores.settings("sqlite", time_zone="UTC")


def kept_files(store: Store) -> set[str]:
    """The files that the manifest names or keeps."""
    now = manifest(store)
    return {*upkeep.list_files(now), *now.unused}


def grow(store: Store, clock: FakeClock, chance: random.Random) -> None:
    """Write facts of a few hours, and let them pass."""
    write_history(store, chance, clock.now(), COUNT)
    clock.advance(HOUR)


def test_a_kill_between_any_two_steps_changes_nothing(
    store: Store, clock: FakeClock, spark: SparkSession
) -> None:
    chance = random.Random(3)
    clock.set_by(SPRING - clock.now())
    for _ in range(3):
        grow(store, clock, chance)
        run(store, spark)
    clock.advance(3 * DAY)  # the days before are over: their files are merged
    seen: list[Step] = []
    while Step.SAVED not in seen:
        grow(store, clock, chance)
        before, count = results(store), 0

        def tell(progress: Progress) -> None:
            nonlocal count
            count += 1
            if count > len(seen):
                seen.append(progress.step)
                raise Killed

        with pytest.raises(Killed):
            run(store, spark, tell=tell)
        assert (results(store) == before) == (seen[-1] is not Step.SAVED), seen
    assert {Step.LANDED, Step.COMPACTING, Step.COMPUTED, Step.SAVING} <= {*seen}
    grow(store, clock, chance)
    run(store, spark)
    assert files_on_disk(store) == kept_files(store)
    assert results(store) == recomputed(store, spark)


@pytest.mark.parametrize(
    "steps",
    [
        (Step.COMPUTED,),
        # Before and after the manifest is replaced; the test above stops a run at every step.
        pytest.param((Step.COMPUTED, Step.SAVED), marks=pytest.mark.long),
    ],
)
def test_sigkill_changes_nothing(
    store: Store,
    clock: FakeClock,
    spark: SparkSession,
    settings: Settings,
    class_archives: ClassArchives,
    steps: tuple[Step, ...],
) -> None:
    chance = random.Random(4)
    class_archives.lend(settings.home)
    clock.set_by(SPRING - clock.now())
    for _ in range(3):
        grow(store, clock, chance)
        run(store, spark)
    grow(store, clock, chance)
    for step in steps:
        before = results(store)
        victim = subprocess.run(
            [sys.executable, "-m", "tests.reports.job.victim", settings.home, settings.url, step],
            env=Bullpen(settings.home).environment(),
            capture_output=True,
            timeout=120,
        )
        assert victim.returncode == -signal.SIGKILL, victim.stderr
        assert files_on_disk(store) > kept_files(store), "it wrote nothing"
        assert (results(store) == before) == (step is not Step.SAVED), step
    grow(store, clock, chance)
    run(store, spark)
    assert files_on_disk(store) == kept_files(store)
    assert results(store) == recomputed(store, spark)
