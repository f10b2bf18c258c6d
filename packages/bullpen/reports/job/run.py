"""The job: lands new facts, computes the days that they touch, and replaces the manifest.

Nothing of a run counts before its last step, which replaces the manifest. A run that fails or is
killed leaves the reports of before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from bullpen.core.clock import DAY, owner_zone_name
from bullpen.core.errors import (
    ReportsDamaged,
    ReportsRunning,
    SparkFailed,
    StoreBusy,
)
from bullpen.core.files import PRIVATE_DIRECTORY_MODE, file_lock, require_free_space
from bullpen.core.store.base import Store
from bullpen.core.store.identity import store_id
from bullpen.reports.detached_run import RUN_LOCK
from bullpen.reports.facts.position import cut_ranges, find_committed
from bullpen.reports.facts.read import StoreAddress
from bullpen.reports.job import upkeep
from bullpen.reports.job.days import Days, utc_date
from bullpen.reports.job.frames import LANDED_TABLES, open_facts
from bullpen.reports.job.guard import check_store, last_landed, row_key
from bullpen.reports.job.land import Landing, Range, land_again, land_in_tasks
from bullpen.reports.job.land_here import land_here
from bullpen.reports.job.plan import Plan
from bullpen.reports.job.progress import Outcome, Progress, ReportOutcome, Step, Tell
from bullpen.reports.job.results import compute_table, save_table
from bullpen.reports.job.upkeep import unreadable_files
from bullpen.reports.manifest import (
    FactTableState,
    Manifest,
    ReportState,
    read_manifest,
    write_manifest,
)
from bullpen.reports.report import Facts, Report, find_reports
from bullpen.reports.spark.failures import describe_failure, is_full, is_of_parquet
from bullpen.reports.spark.session import tune_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NAMES = tuple(each.name for each in LANDED_TABLES)
DRIVER_IDS = 250_000
"""The most new ids of a table that are landed without Spark."""

SMALL_ROWS = 1_500_000
"""The most facts that a session with `small` computes faster than one without."""

BYTES_OF_FACT = 100
"""A generous size of a fact on the disk. The queue needs the disk more than the reports."""

FRESH_MS = 60_000
"""With nothing new, the manifest is replaced only if its time is older than this."""

SparkFactory = Callable[[bool], "AbstractContextManager[SparkSession]"]
"""Opens a session, for a run with few rows or for any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a run is asked for besides the new facts."""

    again: bool = False
    """Delete what there is, and begin with an empty directory."""
    since: date | None = None
    """Compute the results of this day and of all later ones."""


def run_job(
    store: Store,
    spark: SparkFactory,
    request: Request | None = None,
    *,
    tell: Tell = lambda _: None,
    reports: Sequence[Report] | None = None,
) -> Outcome:
    """Bring the reports up to date with the store; `reports` are by default all installed ones."""
    directory = store.settings.reports
    directory.mkdir(mode=PRIVATE_DIRECTORY_MODE, parents=True, exist_ok=True)
    request = request or Request()
    with file_lock(directory / RUN_LOCK, 0.0) as held:
        if held is None:
            raise ReportsRunning(f"another run is using {directory}")
        old = _read_old(directory, request)
        upkeep.delete_unnamed(directory, old)
        installed, problems = (reports, {}) if reports is not None else find_reports()
        job = _Job(store, spark, request, tell, installed, problems, old)
        try:
            return job.run()
        except Exception as error:
            upkeep.delete_unnamed(directory, old)
            ours = describe_failure(error, store.settings)
            if ours is error:
                raise
            raise ours from error


def _read_old(directory: Path, request: Request) -> Manifest | None:
    try:
        return read_manifest(directory)
    except ReportsDamaged:
        if request.again:
            return None
        raise


@dataclass(frozen=True, slots=True)
class _News:
    """What is new in the store."""

    upto: Mapping[str, int]
    """The highest id to land, by table; a table is left out while a transaction keeps writing."""
    parts: tuple[Range, ...]

    @property
    def waiting(self) -> tuple[str, ...]:
        """The tables that are left out."""
        return tuple(each.name for each in LANDED_TABLES if each.name not in self.upto)

    def ids(self, table: str) -> int:
        """The number of new ids of a table."""
        return sum(each.ids for each in self.parts if each.table == table)


class _Job:
    """One run, which holds the lock."""

    def __init__(
        self,
        store: Store,
        spark: SparkFactory,
        request: Request,
        tell: Tell,
        reports: Sequence[Report],
        problems: Mapping[str, str],
        old: Manifest | None,
    ) -> None:
        self._store = store
        self._spark = spark
        self._request = request
        self._tell = tell
        self._reports = reports
        self._problems = problems
        self._old = old
        self._began = time.monotonic()
        self._now = store.clock.now()
        self._directory = store.settings.reports
        self._searched = False
        """Whether damaged files were looked for."""
        self._zone = owner_zone_name(store.settings)
        with store.read() as tx:
            fresh = Manifest(store=store_id(tx), zone=self._zone)
        self._before = fresh if old is None or request.again else old
        """What the run builds on."""

    def run(self) -> Outcome:
        """Do it; a damaged file is found by the failure that it causes, and made again."""
        check_store(self._store, self._before)
        try:
            return self._run(set())
        except (ReportsDamaged, SparkFailed):
            self._searched = True
            damaged = unreadable_files(self._directory, self._before)
            if not damaged:
                raise
            return self._run(damaged)

    def _run(self, damaged: set[str]) -> Outcome:
        plan = Plan(self._directory, self._zone, self._before, self._reports, self._request.since)
        landing = Landing(self._directory, self._zone, StoreAddress(self._store.settings.url))
        plan.facts = land_again(landing, plan.facts, damaged, self._tell)
        plan.drop_damaged_results(damaged)
        news = self._find_new()
        in_tasks = any(news.ids(each.name) > DRIVER_IDS for each in LANDED_TABLES)
        if not in_tasks:
            self._land(plan, landing, news, None)
            if not plan.has_work():
                return self._save(plan, news, [])
            self._compact(plan)
        with self._open_spark(small=not in_tasks and plan.fact_rows() <= SMALL_ROWS) as spark:
            if in_tasks:
                self._land(plan, landing, news, spark)
                self._compact(plan)
            return self._save(plan, news, self._compute(plan, spark))

    def _find_new(self) -> _News:
        """The ids that are new, up to those whose transactions have all ended."""
        upto: dict[str, int] = {}
        parts: list[Range] = []
        for table in LANDED_TABLES:
            landed = self._before.facts.get(table.name, FactTableState()).upto
            try:
                upto[table.name] = max(landed, find_committed(self._store, table))
            except StoreBusy:
                continue
            for ids in cut_ranges(self._store, table, landed + 1, upto[table.name]):
                parts.append(Range(table.name, ids.first, ids.last))
        return _News(upto, tuple(parts))

    def _land(self, plan: Plan, landing: Landing, news: _News, spark: SparkSession | None) -> None:
        expected = sum(each.ids for each in news.parts) * BYTES_OF_FACT
        require_free_space(self._directory, self._store.settings.free_bytes_floor, expected)
        for table in LANDED_TABLES:
            if ids := news.ids(table.name):
                self._tell(Progress(Step.LANDING, table.name, ids))
        if spark is None:
            landed = land_here(landing, news.parts)
        else:
            landed = land_in_tasks(spark, landing, news.parts)
        plan.add(landed)
        for name, rows in plan.landed.items():
            self._tell(Progress(Step.LANDED, name, rows))

    def _compact(self, plan: Plan) -> None:
        plan.compact(utc_date(self._now // DAY).isoformat(), self._tell)

    @contextmanager
    def _open_spark(self, *, small: bool) -> Iterator[SparkSession]:
        self._tell(Progress(Step.STARTING))
        with self._spark(small) as session:
            tune_session(session, small=small)
            yield session

    def _compute(self, plan: Plan, spark: SparkSession) -> list[ReportOutcome]:
        """Compute the reports one after the other; one that fails keeps its results."""
        facts: dict[Days, Facts] = {}
        outcomes: list[ReportOutcome] = []
        for report in self._reports:
            days = plan.days_of(report)
            if not days:
                continue
            if days not in facts:
                facts[days] = open_facts(spark, self._directory, plan.files(), days)
            began = time.monotonic()
            self._tell(Progress(Step.COMPUTING, report.name, days=days.count))
            try:
                rows = self._compute_report(plan, report, facts[days], days)
            except Exception as error:
                text = self._failure_of(error)
                done = ReportOutcome(name=report.name, days=days.count, error=text)
                self._tell(Progress(Step.FAILED, report.name, text=text))
            else:
                seconds = time.monotonic() - began
                done = ReportOutcome(name=report.name, rows=rows, days=days.count, seconds=seconds)
                self._tell(Progress(Step.COMPUTED, report.name, rows, days.count))
            outcomes.append(done)
        if len(outcomes) > 1 and all(each.error for each in outcomes):
            raise SparkFailed(f"no report could be computed: {outcomes[0].error}")
        return outcomes

    def _compute_report(self, plan: Plan, report: Report, facts: Facts, days: Days) -> int:
        """Compute all its tables, then save them; returns the number of rows."""
        computed = {table: compute_table(table, facts, days) for table in report.tables}
        results = dict(plan.results)
        for table, rows in computed.items():
            before = results.get(table.name, ())
            results[table.name] = save_table(self._directory, table, rows, days, before, self._now)
        plan.results = results
        return sum(rows.num_rows for rows in computed.values())

    def _failure_of(self, error: Exception) -> str:
        """Why a report failed; raises what is not its own fault."""
        ours = describe_failure(error, self._store.settings)
        if isinstance(error, OSError) or is_full(error) or isinstance(ours, ReportsDamaged):
            raise error
        if not self._searched and is_of_parquet(error):
            raise ReportsDamaged(str(ours)) from error
        return str(ours)

    def _save(self, plan: Plan, news: _News, computed: Sequence[ReportOutcome]) -> Outcome:
        """Replace the manifest, and delete what it no longer keeps."""
        manifest = self._next_manifest(plan, news, computed)
        changed = manifest.run > (self._old or self._before).run
        if changed or self._is_old(manifest):
            self._tell(Progress(Step.SAVING))
            write_manifest(self._directory, manifest)
            self._tell(Progress(Step.SAVED))
            upkeep.delete_unnamed(self._directory, manifest)
        covered = [each.covers_until for each in manifest.facts.values()]
        problems = [
            ReportOutcome(name=name, error=why) for name, why in sorted(self._problems.items())
        ]
        return Outcome(
            run=manifest.run,
            changed=changed,
            landed={each: plan.landed.get(each, 0) for each in _NAMES},
            reports=(*computed, *problems),
            covers_until=min((each for each in covered if each is not None), default=None),
            waiting_for=news.waiting,
            seconds=time.monotonic() - self._began,
        )

    def _next_manifest(
        self, plan: Plan, news: _News, computed: Sequence[ReportOutcome]
    ) -> Manifest:
        old = self._old or self._before
        failed = {each.name: each.error for each in computed if each.error}
        tables = {table.name for each in self._reports for table in each.tables}
        # What cannot be loaded today may own the other tables.
        results = {
            name: files
            for name, files in sorted(plan.results.items())
            if files and (name in tables or self._problems)
        }
        changed = bool(computed or plan.landed or results.keys() != old.results.keys())
        manifest = Manifest(
            store=self._before.store,
            zone=self._zone,
            run=old.run + changed,
            generated_at=self._now if changed else old.generated_at,
            facts={name: self._next_state(plan, news, name) for name in _NAMES},
            results=results,
            reports={
                each.name: self._next_report(plan, news, each, failed.get(each.name, ""))
                for each in self._reports
            },
        )
        return replace(manifest, unused=upkeep.unused_files(old, manifest))

    def _next_state(self, plan: Plan, news: _News, name: str) -> FactTableState:
        state = plan.facts.get(name, FactTableState())
        if name in news.waiting:
            return state
        last_key = state.last_key
        if plan.landed.get(name):
            with self._store.read() as tx:
                last_key = row_key(tx, name, last_landed(state))
        return replace(state, upto=news.upto[name], last_key=last_key, covers_until=self._now)

    def _next_report(self, plan: Plan, news: _News, report: Report, error: str) -> ReportState:
        before = self._before.reports.get(report.name, ReportState())
        if error:
            days = plan.days_of(report).days
            if days is None:
                return replace(before, version="", error=error)
            return replace(before, error=error, missing=tuple(f"{each}" for each in sorted(days)))
        if news.waiting:
            return replace(before, version=plan.versions[report.name], error="", missing=())
        return ReportState(version=plan.versions[report.name], covers_until=self._now)

    def _is_old(self, manifest: Manifest) -> bool:
        """Whether the manifest on the disk says too little of the present."""
        if self._old is None:
            return True
        known = [each.covers_until for each in self._old.facts.values()]
        return any(each is None or self._now - each >= FRESH_MS for each in known)
