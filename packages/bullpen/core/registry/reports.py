"""ReportInfo: a report about past runs; and the list of reports."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bullpen.core.registry.entries import SERVICE_NAME, Registry


class Chart(StrEnum):
    """How a report is drawn."""

    NONE = "none"
    BAR = "bar"
    LINE = "line"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportInfo:
    """A report: a question about past runs, and its answer."""

    name: str
    question: str
    columns: tuple[str, ...]
    factory: str
    """`module:attribute` of the function that computes its rows with Spark."""
    chart: Chart = Chart.NONE


REPORTS = Registry(ReportInfo, "bullpen.reports", names=SERVICE_NAME)
