"""Runs the job as `bullpen report run` does, but lands everything in tasks, in ranges of few ids.

`python -m tests.reports.cluster.drive`; the settings are in the environment. Prints what Spark was
told and what it plans, for tests that look for secrets there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from bullpen.core.settings import Settings
from bullpen.core.store.open import open_store
from bullpen.reports.facts.position import cut_ranges
from bullpen.reports.job import run
from bullpen.reports.job.land import Landed, Landing, Range, land_in_tasks
from bullpen.reports.spark.session import open_session
from bullpen.reports.spark.source import register
from tests.reports.job.facts import BOTH

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RANGE = 20


@contextmanager
def talkative(settings: Settings, _: bool) -> Iterator[SparkSession]:
    """A session that says what it knows."""
    with open_session(settings, small=True) as spark:
        if settings.spark_master.startswith("sc://"):
            register(spark)
            found = spark.read.format("bullpen").option("url", settings.url)
            rows = found.option("table", "attempts").load().where("id > 3")
            rows.explain("extended")
            print("rows", rows.count())
        else:
            print(spark.sparkContext.getConf().toDebugString())
        yield spark


def land(spark: SparkSession, landing: Landing, parts: Sequence[Range]) -> list[Landed]:
    """Land in tasks, and say how many there are."""
    print("ranges", len(parts))
    return land_in_tasks(spark, landing, parts)


def main() -> None:
    """Run the job once."""
    cut = partial(cut_ranges, rows=RANGE)
    vars(run).update(DRIVER_IDS=0, land_in_tasks=land, cut_ranges=cut)
    settings = Settings.load(os.environ)
    with closing(open_store(settings)) as store:
        outcome = run.run_job(store, partial(talkative, settings), reports=BOTH)
    print("landed", outcome.landed, file=sys.stderr)


if __name__ == "__main__":
    main()
