"""Reports about past runs."""

from __future__ import annotations

from tests.cli.schemas.base import Document

Cell = str | int | float | bool | None


class Freshness(Document):
    covers_from: int | None
    covers_until: int | None
    generated_at: int
    zone: str


class ReportState(Document):
    name: str
    title: str
    question: str
    views: list[str]
    tables: list[str]
    filters: list[str]
    rows: int
    freshness: Freshness | None


class ReportRows(Document):
    report: str
    view: str
    covers_from: int | None
    covers_until: int | None
    generated_at: int
    zone: str
    since: str | None
    until: str | None
    ignored_filters: list[str]
    total: int
    rows: list[dict[str, Cell]]
    next_cursor: str | None
