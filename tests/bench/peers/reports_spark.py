"""The job itself, measured step by step.

A process of its own: `python -m tests.bench.peers.reports_spark HOME URL DIRECTORY ZONE [MORE]`.
With `MORE`, a database with more of the same facts, it runs twice in one session: the second run
computes what `MORE` has beyond the first one, up to the id that follows the path after a colon.
With `archive` instead, it writes the class archive that the next run in this home starts with.
"""

from __future__ import annotations

import json
import sys
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from bullpen.core.settings import Settings
from bullpen.core.store.open import open_store
from bullpen.reports.job.progress import Progress, Step
from bullpen.reports.job.run import run_job
from bullpen.reports.spark.session import open_session
from tests.bench.process_tree import TreeMeter, Used
from tests.bench.reports_facts import copy_facts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(slots=True)
class Marks:
    """When each step of a run was told, in use."""

    meter: TreeMeter
    found: list[tuple[Step, Used]] = field(default_factory=list)

    def tell(self, progress: Progress) -> None:
        """Note the use so far."""
        self.found.append((progress.step, self.meter.used()))

    def start(self) -> float:
        """The processor time of Spark's start: until the step that follows it."""
        for (step, began), (_, ended) in zip(self.found, self.found[1:], strict=False):
            if step is Step.STARTING:
                return (ended - began).cpu
        return 0.0

    def landing(self) -> float:
        """The processor time of landing."""
        began = next(used for step, used in self.found if step is Step.LANDING)
        landed = [used for step, used in self.found if step is Step.LANDED]
        return (landed[-1] - began).cpu


class OneSession:
    """Opens a session when it is first asked for one, and gives every run the same."""

    def __init__(self, settings: Settings, until: ExitStack, *, archive: bool) -> None:
        self._settings = settings
        self._until = until
        self._record = (lambda: None) if archive else None
        self._session: SparkSession | None = None

    def __call__(self, small: bool) -> AbstractContextManager[SparkSession]:
        """The session, which stays open."""
        if self._session is None:
            opened = open_session(self._settings, small=small, record=self._record)
            self._session = self._until.enter_context(opened)
        return nullcontext(self._session)


def measure(settings: Settings, meter: TreeMeter, spark: OneSession) -> dict[str, float]:
    """Run the job once."""
    marks = Marks(meter)
    began = meter.used()
    with closing(open_store(settings)) as store:
        outcome = run_job(store, spark, tell=marks.tell)
    assert not outcome.failed, outcome
    used = meter.used() - began
    return {
        "cpu": used.cpu,
        "wall": used.wall,
        "start": marks.start(),
        "land": marks.landing(),
        "memory": meter.memory,
        "driver": meter.driver_memory,
    }


def main(home: str, url: str, directory: str, zone: str, more: str = "") -> None:
    """Run once or twice, and print what it used."""
    settings = Settings(
        home=Path(home), database_url=url, reports_directory=Path(directory), time_zone=zone
    )
    with TreeMeter() as meter, ExitStack() as until:
        session = OneSession(settings, until, archive=more == "archive")
        first = measure(settings, meter, session)
        printed: dict[str, object] = {"first": first}
        if more not in ("", "archive"):
            path, _, upto = more.rpartition(":")
            copy_facts(Path(path), Path(url.removeprefix("sqlite:///")), int(upto))
            printed["second"] = measure(settings, meter, session)
    print(json.dumps(printed))


if __name__ == "__main__":
    main(*sys.argv[1:])
