"""Plan: what a run has to compute, and the files that count after it."""

from __future__ import annotations

import hashlib
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from zoneinfo import ZoneInfo

from bullpen.reports import expressions
from bullpen.reports.job.days import Days, days_between, days_of_month, local_day
from bullpen.reports.job.land import Landed
from bullpen.reports.job.progress import Tell
from bullpen.reports.job.upkeep import compact, has_wrong_size
from bullpen.reports.manifest import FactFile, FactTableState, Manifest, ResultFile
from bullpen.reports.report import Report


class Plan:
    """The files that count, as a run changes them, and the days that each report is computed for.

    A report is computed for all days if it is new, if its code has changed, or if the days are
    those of another time zone.
    """

    def __init__(
        self,
        directory: Path,
        zone: str,
        before: Manifest,
        reports: Sequence[Report],
        since: date | None,
    ) -> None:
        self._directory = directory
        self._before = before
        self._zone = zone
        self._since = since
        self._reports = reports
        self._touched: dict[str, set[date]] = defaultdict(set)
        self._lost: dict[str, set[date]] = defaultdict(set)
        self.versions = {each.name: report_version(each) for each in reports}
        self.facts: dict[str, FactTableState] = dict(before.facts)
        self.results: dict[str, tuple[ResultFile, ...]] = dict(before.results)
        self.landed: dict[str, int] = {}

    def add(self, landed: Sequence[Landed]) -> None:
        """Count new files of facts, and compute the days that they touch."""
        for each in landed:
            state = self.facts.get(each.table, FactTableState())
            oldest = state.covers_from
            if not state.upto:
                oldest = each.oldest if oldest is None else min(oldest, each.oldest)
            files = (*state.files, each.file)
            self.facts[each.table] = replace(state, files=files, covers_from=oldest)
            self._touched[each.table] |= each.days
            self.landed[each.table] = self.landed.get(each.table, 0) + each.file.rows

    def drop_damaged_results(self, damaged: set[str]) -> None:
        """Compute the months again whose files are missing or damaged."""
        for table, files in self.results.items():
            lost = [
                each
                for each in files
                if each.name in damaged or has_wrong_size(self._directory, each)
            ]
            self.results[table] = tuple(each for each in files if each not in lost)
            for each in lost:
                self._lost[table] |= days_of_month(each.month)

    def days_of(self, report: Report) -> Days:
        """The days to compute; none if its results are up to date."""
        state = self._before.reports.get(report.name)
        if not self.has_facts():
            return Days(self._zone, frozenset())
        changed = state is None or state.version != self.versions[report.name]
        if state is None or changed or self._zone != self._before.zone:
            return Days(self._zone, None)
        days = set(map(date.fromisoformat, state.missing))
        for table in report.facts:
            days |= self._touched[table]
        for each in report.tables:
            days |= self._lost[each.name]
        if self._since is not None:
            days |= days_between(self._since, self._last_day())
        return Days(self._zone, frozenset(days))

    def has_facts(self) -> bool:
        """Whether there are any facts."""
        return any(each.files for each in self.facts.values())

    def has_work(self) -> bool:
        """Whether there is a report to compute."""
        return any(self.days_of(each) for each in self._reports)

    def fact_rows(self) -> int:
        """The most facts that one report is computed from."""
        wanted = {self.days_of(each) for each in self._reports}
        return max(
            (
                sum(
                    file.rows
                    for each in self.facts.values()
                    for file in days.select_files(each.files)
                )
                for days in wanted
                if days
            ),
            default=0,
        )

    def files(self) -> Mapping[str, tuple[FactFile, ...]]:
        """The files of facts, by table."""
        return {table: state.files for table, state in self.facts.items()}

    def compact(self, today: str, tell: Tell) -> None:
        """Replace the small files of each day before today."""
        for table, state in self.facts.items():
            files = compact(self._directory, table, state.files, today, tell)
            self.facts[table] = replace(state, files=files)

    def _last_day(self) -> date:
        latest = max(each.latest for state in self.facts.values() for each in state.files)
        return local_day(latest, ZoneInfo(self._zone))


def report_version(report: Report) -> str:
    """A text that changes with the tables of the report and with the code near its transforms."""
    digest = hashlib.sha256()
    for table in report.tables:
        transform = f"{table.transform.__module__}.{table.transform.__qualname__}"
        digest.update(repr((table.name, table.grain, table.columns, transform)).encode())
    for path in sorted(_source_files(report)):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _source_files(report: Report) -> set[Path]:
    """The modules that a transform may use: those beside its own, and the shared expressions."""
    assert expressions.__file__ is not None
    files = {Path(expressions.__file__)}
    for table in report.tables:
        module = sys.modules.get(table.transform.__module__)
        file = getattr(module, "__file__", None)
        if module is None or file is None:
            continue
        path = Path(file)
        # A module outside of a package has unrelated neighbours.
        files.update(path.parent.glob("*.py") if module.__package__ else [path])
    return files
