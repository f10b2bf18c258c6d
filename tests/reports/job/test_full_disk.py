"""The reports lie on a file system of their own, and it is full at some step of a run."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bullpen.core.errors import ReportsError
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.reports.job import upkeep
from bullpen.reports.job.progress import Progress, Step
from tests.reports.job.facts import SPRING, write_history
from tests.reports.job.jobs import files_on_disk, manifest, recomputed, results, run
from tests.stores import Stores

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def kind() -> str:
    return "sqlite"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system."""
    made = tmp_path / "disk"
    made.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m,mode=700", "none", str(made)]
    if (
        os.geteuid() != 0
        or shutil.which("mount") is None
        or subprocess.run(mount, check=False, capture_output=True).returncode != 0
    ):
        pytest.skip("no small file system can be mounted here")
    yield made
    subprocess.run(["umount", "-l", str(made)], check=True)


@pytest.fixture
def settings(stores: Stores, kind: str, disk: Path) -> Settings:
    return replace(stores.settings(kind, time_zone="UTC"), reports_directory=disk / "reports")


def fill(filler: Path) -> None:
    """Leave no byte."""
    for size in (1 << 16, 1):
        with filler.open("ab", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(size))


def test_a_full_disk_is_an_error_at_every_step_and_the_reports_stay(
    store: Store, spark: SparkSession, disk: Path
) -> None:
    write_history(store, random.Random(5), SPRING, 20)
    run(store, spark)
    before = results(store)
    write_history(store, random.Random(9), SPRING, 5)
    for step in (Step.LANDING, Step.COMPUTING, Step.COMPUTED, Step.SAVING):

        def tell(progress: Progress, step: Step = step) -> None:
            if progress.step is step:
                fill(disk / "filler")

        with pytest.raises(ReportsError, match="no space left"):
            run(store, spark, tell=tell)
        (disk / "filler").unlink()
        assert results(store) == before, step
        assert files_on_disk(store) == {*upkeep.list_files(manifest(store))}, step
    run(store, spark)
    assert results(store) == recomputed(store, spark) != before
