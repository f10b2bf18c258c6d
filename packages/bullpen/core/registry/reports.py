"""ReportInfo: a report about past runs; and the list of reports."""

from __future__ import annotations

from dataclasses import dataclass

from bullpen.core.registry.entries import SERVICE_NAME, Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportInfo:
    """An entry of the list of reports."""

    name: str
    factory: str
    """`module:attribute` of the `bullpen.reports.report.Report`."""


REPORTS = Registry(
    ReportInfo,
    "bullpen.reports",
    tuple(
        ReportInfo(name=name, factory=f"bullpen.reports.built_in.{name}:{name.upper()}")
        for name in (
            *("throughput", "latency", "retries", "failures"),
            *("handoffs", "usage", "delivery", "people"),
        )
    ),
    names=SERVICE_NAME,
)
