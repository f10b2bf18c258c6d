"""Freshness: the time that a report covers, and when it was computed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from bullpen.core.clock import format_time
from bullpen.core.errors import NoReportsYet
from bullpen.reports.manifest import Manifest
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

    def describe(self, now: int) -> str:
        """The age as a person reads it."""
        if self.covers_until is None:
            return "No facts yet."
        until = format_time(self.covers_until, self.zone)
        return f"Complete until {until}, {format_duration(now - self.covers_until)} ago."


def freshness_of(manifest: Manifest, report: Report) -> Freshness:
    """The freshness of a report: that of the fact table which covers least."""
    states = [manifest.facts[each] for each in report.facts if each in manifest.facts]
    begins = [each.covers_from for each in states if each.covers_from is not None]
    return Freshness(
        covers_from=max(begins, default=None),
        covers_until=complete_until(manifest, report.facts),
        generated_at=manifest.generated_at,
        zone=manifest.zone,
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
