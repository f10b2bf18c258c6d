"""Three schedulers, killed at random: each loop is run by one at a time, and goes on."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from bullpen.core.maintenance import jobs
from bullpen.core.maintenance.jobs import MaintenanceJob
from bullpen.core.models import SYSTEM_AGENTS
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from bullpen.scheduler import main
from bullpen.scheduler.main import Scheduler
from tests.conformance.verbs import rows
from tests.crash.children import append, brood, lines, orphaned, until

TURN_SECONDS, RENEW_SECONDS = 3, 0.5
PROBES = {"quick": 0.1, "slow": 1.0, "long": TURN_SECONDS + 1.0}
KILLS = 6
AGAIN_SECONDS = 180.0


class Telling(Scheduler):
    """A scheduler that writes down when it runs what, and until when it has each turn."""

    def __init__(self, store: Store, log: Path) -> None:
        self._log = log
        rota = (MaintenanceJob(name, 1, self._probe(name, PROBES[name])) for name in PROBES)
        super().__init__(store, tuple(rota))

    def _probe(self, name: str, seconds: float) -> Callable[[Store], str]:
        def run(store: Store) -> str:
            began = store.clock.now()
            # One that stood still between its taking the turn and here may have lost it.
            if (end := self._mine(store).get(name)) is not None:
                self._tell(f"begin {name} {began} {end}")
            time.sleep(seconds)
            self._tell(f"end {name} {store.clock.now()}")
            return "probed"

        return run

    def _renew_leases(self) -> float:
        wait = super()._renew_leases()
        for name, end in self._mine(self._store).items():
            self._tell(f"renewed {name} {end}")
        return wait

    def _mine(self, store: Store) -> dict[str, int]:
        """Until when it has which turns."""
        held = (row for row in rows(store, SYSTEM_AGENTS) if row["holder"] == self.worker)
        return {row["name"]: int(row["lease_expires_at"]) for row in held}

    def _tell(self, what: str) -> None:
        append(self._log, f"{os.getpid()} {what}")


def schedule(settings: Settings, log: Path) -> None:
    """Be such a scheduler until the test ends."""
    setattr(jobs, "JOB_LEASE_SECONDS", TURN_SECONDS)  # noqa: B010
    setattr(main, "RENEW_LEASE_SECONDS", RENEW_SECONDS)  # noqa: B010
    with closing(open_store(settings)) as store:
        Telling(store, log).start()
        while not orphaned():
            time.sleep(0.1)


@dataclass
class Run:
    """From when to when it is certain that nobody else might run this."""

    name: str
    began: int
    leased_until: int
    ended: int | None = None

    @property
    def end(self) -> int:
        """A process that the machine lets stand still has its turn no longer than its lease."""
        return min(self.ended or self.leased_until, self.leased_until)


def read(log: Path) -> list[Run]:
    """The runs that began."""
    found: list[Run] = []
    last: dict[tuple[str, str], Run] = {}
    for line in lines(log):
        pid, what, name, *times = line.split()
        if what == "begin":
            last[pid, name] = Run(name, *map(int, times))
            found.append(last[pid, name])
        elif (run := last.get((pid, name))) is not None and run.ended is None:
            if what == "end":
                run.ended = int(times[0])
            else:
                run.leased_until = max(run.leased_until, int(times[0]))
    return found


def check(runs: list[Run]) -> None:
    """Nobody began what another one might do."""
    for name in PROBES:
        mine = sorted((run for run in runs if run.name == name), key=lambda run: run.began)
        for earlier, later in pairwise(mine):
            assert earlier.end <= later.began, (earlier, later)


def done(log: Path) -> Counter[str]:
    """How often each was done to the end."""
    return Counter(run.name for run in read(log) if run.ended is not None)


@pytest.mark.slow
def test_three_schedulers_run_each_loop_one_at_a_time_while_they_are_killed(
    settings: Settings, tmp_path: Path
) -> None:
    log, chance = tmp_path / "log", random.Random(5)
    with brood(tmp_path / "errors") as children:
        all_ = [children.start(schedule, settings, log) for _ in range(3)]
        until(lambda: len(done(log)) == len(PROBES), "each is done", AGAIN_SECONDS)
        for _ in range(KILLS):
            time.sleep(chance.uniform(0.3, 1.5))
            all_.pop(chance.randrange(3)).kill()
            all_.append(children.start(schedule, settings, log))
        before = done(log)
        until(
            lambda: all(done(log)[name] > before[name] for name in PROBES),
            "each is done again",
            AGAIN_SECONDS,
        )
        until(lambda: done(log)["quick"] >= 5, "what is due each second is done", AGAIN_SECONDS)
        children.check()
    check(read(log))
