"""Filter: which rows of a report are read: those of a period, an agent, a team or a channel."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime

from bullpen.core.clock import SECOND, get_zone, parse_duration
from bullpen.core.errors import BadQuery, BadSchedule
from bullpen.reports.report import Report, Table

DAY = "day"
"""The column by which a period is selected."""

FILTER_COLUMNS = {"agent": ("agent",), "team": ("team_id", "team"), "channel": ("channel",)}
"""By filter: the columns that it selects by; the first one that a table has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which rows of a report's tables are read. A table without a column is not filtered by it."""

    since: date | None = None
    """The first day."""
    until: date | None = None
    """The last day."""
    agent: str | None = None
    team: str | None = None
    channel: str | None = None

    def values(self) -> dict[str, str]:
        """The values that are filtered by, by filter."""
        given = {"agent": self.agent, "team": self.team, "channel": self.channel}
        return {name: value for name, value in given.items() if value is not None}


EVERYTHING = Filter()


def filters_of(report: Report) -> list[str]:
    """The names of the filters that a report has, besides the period."""
    return [
        name
        for name, columns in FILTER_COLUMNS.items()
        if {name, *columns}.intersection(report.filters)
    ]


def filter_column(table: Table, name: str) -> str | None:
    """The column by which a table is filtered; None if it cannot be."""
    names = {each.name for each in table.columns}
    return next((each for each in FILTER_COLUMNS[name] if each in names), None)


def check_filter(report: Report, chosen: Filter) -> None:
    """Refuse a filter that the report does not have, and a period that ends before it begins."""
    known = filters_of(report)
    for name in chosen.values():
        if name not in known:
            raise BadQuery(
                f"the report {report.name} has no filter {name!r}",
                hint=f"Its filters: {', '.join(['since', 'until', *known])}.",
            )
    if chosen.since is not None and chosen.until is not None and chosen.since > chosen.until:
        raise BadQuery(
            f"the first day, {chosen.since}, is after the last day, {chosen.until}",
            hint="Use a first day that is not after the last one.",
        )


def parse_day(text: str, now: int, zone: str) -> date:
    """The day of a text: `2026-11-20`, or a duration back from now such as `7d`."""
    try:
        return date.fromisoformat(text.strip())
    except ValueError:
        pass
    try:
        return local_day(max(0, now - parse_duration(text)), zone)
    except (BadSchedule, OverflowError, OSError):
        raise BadQuery(
            f"invalid day {text[:40]!r}", hint="Examples: `2026-11-20`, `7d`, `12h`."
        ) from None


def local_day(moment: int, zone: str) -> date:
    """The day of a moment in this zone."""
    return datetime.fromtimestamp(moment / SECOND, UTC).astimezone(get_zone(zone)).date()
