"""reports_writers: full cycles by eight processes while the reports are computed, and alone.

The job is a process of its own with the priority that the service gives it. It computes everything
again and again, from the start of Spark to the results.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bullpen.core.queue.enqueue import enqueue
from bullpen.core.queue.lanes import create_lane
from bullpen.core.settings import Settings
from bullpen.ops.demo.plan import HistoryPlan
from bullpen.ops.demo.write import write_history
from bullpen.reports.detached_run import lower_priority
from bullpen.reports.manifest import read_manifest
from tests.bench.laps import message
from tests.bench.measure import Measure, Unit, quantile
from tests.bench.processes import AGENTS, BACKLOG, START_SECONDS, Shift, shift
from tests.bench.reports_job import DAYS, SEED, UNTIL
from tests.bench.rounds import interleave, ratios
from tests.bench.section import Bench, Section
from tests.bench.stores import KINDS, agent_names, sqlite_file

COUNT = 8
PAUSE_SECONDS = 0.05
"""Between two cycles of a writer, on average: the machine has to have time to spare."""
SAMPLE_SECONDS = 0.02
MIB = 1 << 20
PARTS = {"p50": 0.5, "p99": 0.99}
COMMAND = ("-c", "from bullpen.cli.main import main; main()", "report", "run", "--again", "--json")


@dataclass(frozen=True, slots=True)
class Phase:
    """What eight writers did, and what the job did meanwhile."""

    shifts: list[Shift]
    wal: float
    """SQLite: the largest size of the write-ahead log in MiB. PostgreSQL: KiB of it per cycle."""
    runs: int
    """Runs of the job that were completed."""

    @property
    def times(self) -> list[float]:
        """How long each cycle took, in milliseconds."""
        return [each for part in self.shifts for each in part.milliseconds("cycle")]


def reports_writers(bench: Bench) -> Section:
    """What writers notice of the job, on both stores."""
    scale = bench.scale
    measures: list[Measure] = []
    checks: dict[str, bool] = {}
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(COUNT, mp_context=context) as pool:
        list(pool.map(time.sleep, [1.0] * COUNT))  # all are there from now on
        for kind in KINDS:
            settings = _with_history(bench, kind)
            with _job(settings) as process:  # it writes the class archive, once
                failed = process.wait() != 0
            turns = {
                name: WritersTurn(bench, pool, settings, beside_job=beside_job)
                for name, beside_job in (("alone", False), ("beside", True))
            }
            results = interleave(turns, scale.writer_rounds, min(1, scale.warm_up))
            measures += _measures(kind, results)
            checks[f"{kind}: the job landed all facts"] = not failed and _has_facts(settings)
    return Section(measures, checks)


class WritersTurn:
    """One turn of eight writers, with the job beside them or not."""

    def __init__(
        self, bench: Bench, pool: ProcessPoolExecutor, settings: Settings, *, beside_job: bool
    ) -> None:
        self._bench = bench
        self._pool = pool
        self._settings = settings
        self._beside_job = beside_job

    def __call__(self) -> Phase:
        before = self._written()
        given = (self._settings, time.monotonic() + START_SECONDS, self._bench.scale.writer_seconds)
        with _Companion(self._settings, runs_job=self._beside_job) as companion:
            futures = [self._pool.submit(shift, *given, PAUSE_SECONDS) for _ in range(COUNT)]
            shifts = [each.result() for each in futures]
        laps = sum(len(each.laps) for each in shifts)
        is_file = self._settings.url.startswith("sqlite")
        wal = companion.largest / MIB if is_file else (self._written() - before) / laps / 1024
        return Phase(shifts, wal, companion.runs)

    def _written(self) -> int:
        """The bytes that PostgreSQL has written to its log so far."""
        with self._bench.stores.opened(self._settings) as store, store.read() as tx:
            if store.dialect == "sqlite":
                return 0
            row = tx.fetch("SELECT (pg_current_wal_lsn() - '0/0')::bigint")
        assert row is not None
        return int(str(row[0]))


class _Companion:
    """A thread that starts the job again when it has ended, and looks at SQLite's log."""

    def __init__(self, settings: Settings, *, runs_job: bool) -> None:
        self._settings = settings
        self._runs_job = runs_job
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self.largest = 0
        self.runs = 0

    def __enter__(self) -> _Companion:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _work(self) -> None:
        while not self._ended.is_set():
            if not self._runs_job:
                self._look()
                continue
            with _job(self._settings) as process:
                lower_priority(process.pid)
                while process.poll() is None and not self._ended.is_set():
                    self._look()
                self.runs += process.poll() == 0

    def _look(self) -> None:
        log = Path(f"{sqlite_file(self._settings)}-wal")
        with suppress(FileNotFoundError):
            self.largest = max(self.largest, log.stat().st_size)
        self._ended.wait(SAMPLE_SECONDS)


@contextmanager
def _job(settings: Settings) -> Iterator[subprocess.Popen[bytes]]:
    """A run of the job, in a session of its own as the service starts it; ended with the block."""
    environ = {
        **os.environ,
        "BULLPEN_HOME": str(settings.home),
        "BULLPEN_DATABASE_URL": settings.database_url,
    }
    with (settings.home / "job.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, *COMMAND],
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def _with_history(bench: Bench, kind: str) -> Settings:
    """A store with facts for the job, and lanes with a backlog for the writers."""
    settings = bench.stores.settings(kind)
    plan = HistoryPlan.from_settings(
        settings, seed=SEED, attempts=bench.scale.writer_attempts, days=DAYS, until=UNTIL
    )
    write_history(settings, plan, lambda _: None)
    names = agent_names(AGENTS)
    with bench.stores.opened(settings) as store, store.write() as tx:
        for name in names:
            create_lane(tx, name)
        for number in range(BACKLOG):
            enqueue(tx, message(names[number % AGENTS]))
    return settings


def _has_facts(settings: Settings) -> bool:
    manifest = read_manifest(settings.reports)
    return manifest is not None and all(each.files for each in manifest.facts.values())


def _measures(kind: str, results: dict[str, list[Phase]]) -> list[Measure]:
    title = f"8 writers, {kind}:"
    shown = {"alone": "", "beside": " beside the job"}
    found = {
        name: {
            what: [quantile(each.times, part) for each in phases] for what, part in PARTS.items()
        }
        for name, phases in results.items()
    }
    cycles = {name: median(len(each.times) for each in phases) for name, phases in results.items()}
    runs = sum(each.runs for each in results["beside"])
    log = ("largest log", Unit.MIB) if kind == "sqlite" else ("log per cycle", Unit.KIB)
    logs = {name: [each.wal for each in phases] for name, phases in results.items()}
    return [
        *(
            Measure(
                f"{title} cycle{shown[name]} {what}",
                Unit.MILLIS,
                values,
                f"{cycles[name]:.0f} cycles a turn",
            )
            for name, each in found.items()
            for what, values in each.items()
        ),
        *(
            Measure(f"{title} {log[0]}{shown[name]}", log[1], values)
            for name, values in logs.items()
        ),
        *(
            Measure(
                f"{title} {what} beside the job : alone",
                Unit.RATIO,
                ratios(found["beside"][what], found["alone"][what]),
                f"{runs} runs of the job were completed",
            )
            for what in PARTS
        ),
        Measure(
            f"{title} {log[0]} beside the job : alone",
            Unit.RATIO,
            ratios(logs["beside"], logs["alone"]),
        ),
    ]
