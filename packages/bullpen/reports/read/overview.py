"""Overview: which reports there are, and what has been computed of each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bullpen.reports.manifest import Manifest, read_manifest
from bullpen.reports.read.filter import filters_of
from bullpen.reports.read.freshness import Freshness, freshness_of
from bullpen.reports.report import Report, list_reports


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportState:
    """A report, and what has been computed of it."""

    name: str
    title: str
    question: str
    views: tuple[str, ...]
    """The first one is the default."""
    tables: tuple[str, ...]
    filters: tuple[str, ...]
    rows: int
    """Rows in all tables of the report."""
    freshness: Freshness | None
    """None if no run has finished yet."""


def describe_reports(directory: Path) -> list[ReportState]:
    """Every report: the built-in ones, then those of other packages."""
    manifest = read_manifest(directory)
    return [describe_report(each, manifest) for each in list_reports()]


def describe_report(report: Report, manifest: Manifest | None) -> ReportState:
    """A report and what the manifest has of it."""
    results = {} if manifest is None else manifest.results
    tables = tuple(each.name for each in report.tables)
    return ReportState(
        name=report.name,
        title=report.title,
        question=report.question,
        views=tuple(each.name for each in report.views),
        tables=tables,
        filters=tuple(filters_of(report)),
        rows=sum(file.rows for table in tables for file in results.get(table, ())),
        freshness=None if manifest is None else freshness_of(manifest, report),
    )
