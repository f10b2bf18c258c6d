"""Reports about past runs."""

from __future__ import annotations

from pydantic import JsonValue

from tests.cli.schemas.base import Document

Cell = str | int | float | bool | None


class Freshness(Document):
    covers_from: int | None
    covers_until: int | None
    generated_at: int
    zone: str
    error: str | None
    missing: list[str]


class ReportEntry(Document):
    name: str
    title: str
    question: str
    views: list[str]
    tables: list[str]
    filters: list[str]
    rows: int
    freshness: Freshness | None
    problem: str | None


class ReportRows(Document):
    report: str
    view: str
    covers_from: int | None
    covers_until: int | None
    generated_at: int
    zone: str
    error: str | None
    missing: list[str]
    since: str | None
    until: str | None
    ignored_filters: list[str]
    total: int
    rows: list[dict[str, Cell]]
    next_cursor: str | None


class Landed(Document):
    attempts: int
    events: int


class ComputedReport(Document):
    name: str
    rows: int
    days: int | None
    seconds: float
    error: str


class Computed(Document):
    run: int
    changed: bool
    landed: Landed
    reports: list[ComputedReport]
    failed: list[str]
    covers_until: int | None
    waiting_for: list[str]
    seconds: float


class Exported(Freshness):
    path: str
    format: str
    rows: int
    bytes: int


class SqlColumn(Document):
    name: str
    type: str


class SqlResult(Document):
    columns: list[SqlColumn]
    rows: list[list[JsonValue]]
    truncated: bool
    covers_until: int | None
    generated_at: int
    zone: str
