"""Catalog: which reports there are, the time that each covers, and which cannot be used."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from bullpen.core.clock import format_time
from bullpen.core.errors import NoReportsYet
from bullpen.core.text import format_count
from bullpen.reports.manifest import Manifest, ReportState, read_manifest
from bullpen.reports.read.filter import filters_of
from bullpen.reports.read.values import format_duration
from bullpen.reports.report import Report, find_reports


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """The time that a report covers. It is part of every answer."""

    covers_from: int | None
    """The report is complete from this time on: older facts had been deleted before."""
    covers_until: int | None
    """What happened after this time is in none of the numbers."""
    generated_at: int
    """When the last run that changed the reports ended."""
    zone: str
    """The time zone of the days."""
    error: str | None = None
    """Why the last run could not compute it; the numbers are those of an earlier run."""
    missing: tuple[str, ...] = ()
    """The days that the last run could not compute; with an error and without days, all of them."""

    def describe(self, now: int) -> str:
        """The age as a person reads it."""
        text = "Not computed yet."
        if self.covers_until is not None:
            until = format_time(self.covers_until, self.zone)
            text = f"Complete until {until}, {format_duration(now - self.covers_until)} ago."
        return f"{text} {self.failure()}" if self.error else text

    def failure(self) -> str:
        """What the last run could not compute, and why; empty if it computed everything."""
        if not self.error:
            return ""
        days = "this report"
        if self.missing:
            first, last = min(self.missing), max(self.missing)
            count = format_count(len(self.missing), "day")
            days = first if first == last else f"{count} from {first} to {last}"
        return f"The last run could not compute {days}: {self.error}"


def freshness_of(manifest: Manifest, report: Report) -> Freshness:
    """The freshness of a report: it covers no more than its results and than its facts."""
    states = [manifest.facts[each] for each in report.facts if each in manifest.facts]
    begins = [each.covers_from for each in states if each.covers_from is not None]
    state = manifest.reports.get(report.name, ReportState())
    ends = (state.covers_until, complete_until(manifest, report.facts))
    known = [each for each in ends if each is not None]
    return Freshness(
        covers_from=max(begins, default=None),
        covers_until=min(known) if len(known) == len(ends) else None,
        generated_at=manifest.generated_at,
        zone=manifest.zone,
        error=state.error or None,
        missing=state.missing,
    )


def complete_until(manifest: Manifest, facts: Collection[str] | None = None) -> int | None:
    """The time until which these fact tables are complete; without names, all of them."""
    names = manifest.facts if facts is None else facts
    ends = [manifest.facts[each].covers_until for each in names if each in manifest.facts]
    known = [each for each in ends if each is not None]
    return min(known) if known and len(known) == len(names) else None


def require_manifest(manifest: Manifest | None) -> Manifest:
    """The manifest, or the error that no run has finished."""
    if manifest is None:
        raise NoReportsYet("the reports have not been computed yet")
    return manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportEntry:
    """A report, and what has been computed of it."""

    name: str
    title: str
    question: str = ""
    views: tuple[str, ...] = ()
    """The first one is the default."""
    tables: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
    rows: int = 0
    """Rows in all tables of the report."""
    freshness: Freshness | None = None
    """None if no run has finished yet."""
    problem: str | None = None
    """Why the report cannot be used; None if it can."""


def list_entries(directory: Path) -> list[ReportEntry]:
    """Every report: the built-in ones, those of other packages, and those that cannot be used."""
    manifest = read_manifest(directory)
    reports, problems = find_reports()
    return [
        *(describe_report(each, manifest) for each in reports),
        *(
            ReportEntry(name=name, title=name, problem=reason)
            for name, reason in sorted(problems.items())
        ),
    ]


def describe_report(report: Report, manifest: Manifest | None) -> ReportEntry:
    """A report and what the manifest has of it."""
    results = {} if manifest is None else manifest.results
    tables = tuple(each.name for each in report.tables)
    return ReportEntry(
        name=report.name,
        title=report.title,
        question=report.question,
        views=tuple(each.name for each in report.views),
        tables=tables,
        filters=tuple(filters_of(report)),
        rows=sum(file.rows for table in tables for file in results.get(table, ())),
        freshness=None if manifest is None else freshness_of(manifest, report),
    )
