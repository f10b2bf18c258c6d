"""Freshness: the time that a report covers, and when it was computed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from bullpen.core.clock import format_time
from bullpen.core.errors import NoReportsYet
from bullpen.reports.manifest import Manifest, ReportState
from bullpen.reports.read.values import format_duration
from bullpen.reports.report import Report


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

    def describe(self, now: int) -> str:
        """The age as a person reads it."""
        failure = f" The last run could not compute it: {self.error}" if self.error else ""
        if self.covers_until is None:
            return f"Not computed yet.{failure}"
        until = format_time(self.covers_until, self.zone)
        ago = format_duration(now - self.covers_until)
        return f"Complete until {until}, {ago} ago.{failure}"


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
