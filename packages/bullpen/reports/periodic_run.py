"""The service `reports`: starts the job on a schedule, each run a process of its own.

Spark takes a gigabyte of memory, so it does not stay between the runs. A run with nothing new ends
before it starts Spark.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from bullpen.core.background import Loop, WorkerProcess, run_until_stopped
from bullpen.core.clock import DAY, MINUTE, SECOND
from bullpen.core.errors import ReportsError, ReportsRunning
from bullpen.reports.detached_run import RunState, run_status, start_run, stop_run
from bullpen.reports.facts.position import last_id
from bullpen.reports.facts.tables import FACT_TABLES
from bullpen.reports.manifest import Manifest, read_manifest

if TYPE_CHECKING:
    from bullpen.core.store.base import Store

log = logging.getLogger(__name__)

KIND = "reports"
FIRST_SECONDS = 60.0
"""The wait before the first run, so that it does not slow the start of the other services."""
WATCH_SECONDS = 2.0
"""How often a run in progress is looked at."""
MAX_WAIT_SECONDS = 60.0
STOP_SECONDS = 20.0
RETRY_MS = DAY
"""After a failed run with nothing new since: the same would fail again, and needs Spark."""


class ReportsService:
    """Starts a run when the last one is older than `reports_minutes`."""

    def __init__(self, store: Store, first_seconds: float = FIRST_SECONDS) -> None:
        self._store = store
        self._settings = store.settings
        self._interval = self._settings.reports_minutes * MINUTE
        self._first = int(first_seconds * SECOND)
        self._due: int | None = None
        """When the next run starts, by the monotonic clock."""
        self._started = False
        """Whether the run in progress is ours."""
        self._failed_at: int | None = None
        """When the last run failed, by the monotonic clock; None if it did not."""
        self._process = WorkerProcess(store, KIND)
        self._process.add(Loop("runs", self.step, MAX_WAIT_SECONDS))

    def start(self) -> None:
        """Start the loop."""
        self._process.start()

    def stop(self) -> None:
        """Stop the loop, and the run that it started."""
        if self._started:
            stop_run(self._settings, STOP_SECONDS)
        self._process.stop(STOP_SECONDS)

    def step(self) -> float:
        """Start a run if one is due; returns the seconds until the next look."""
        if not self._interval:
            return MAX_WAIT_SECONDS
        if self._started:
            return self._watch()
        now = self._store.clock.monotonic()
        if self._due is None:
            self._due = now + max(self._first, self._interval - self._age())
        if now < self._due:
            return min((self._due - now) / SECOND, MAX_WAIT_SECONDS)
        self._due = now + self._interval
        if self._failed_at is not None and now - self._failed_at < RETRY_MS and not self._is_new():
            return min(self._interval / SECOND, MAX_WAIT_SECONDS)
        try:
            start_run(self._settings, self._store.clock.now())
        except ReportsRunning:
            return WATCH_SECONDS
        self._started = True
        return WATCH_SECONDS

    def _watch(self) -> float:
        status = run_status(self._settings)
        if status.state is RunState.RUNNING:
            return WATCH_SECONDS
        self._started = False
        self._failed_at = self._store.clock.monotonic() if status.error else None
        if status.error:
            log.warning("the reports were not computed: %s (%s)", status.error, status.hint)
        else:
            log.info("the reports were computed")
        return 0.0

    def _age(self) -> int:
        """The time since the reports were complete, in milliseconds; the interval if never."""
        manifest = self._manifest()
        facts = () if manifest is None else manifest.facts.values()
        covered = [each.covers_until for each in facts if each.covers_until is not None]
        if not covered:
            return self._interval
        return max(0, self._store.clock.now() - min(covered))

    def _is_new(self) -> bool:
        """Whether the store has facts that were not landed."""
        manifest = self._manifest()
        if manifest is None:
            return True
        return any(
            last_id(self._store, FACT_TABLES[name]) > state.upto
            for name, state in manifest.facts.items()
        )

    def _manifest(self) -> Manifest | None:
        try:
            return read_manifest(self._settings.reports)
        except ReportsError:
            return None


def run(store: Store) -> None:
    """Run the service until SIGTERM or SIGINT."""
    run_until_stopped(lambda: ReportsService(store))
