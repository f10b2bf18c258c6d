"""Checks of the reports: the job runs often enough."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from sqlalchemy import select

from bullpen.core.clock import DAY
from bullpen.core.models import EVENTS
from bullpen.core.models.base import const
from bullpen.core.store.statement import Statement
from bullpen.core.strict_json import read_json
from bullpen.core.text import format_count
from bullpen.ops.doctor.check import (
    PASSED,
    Needs,
    Problem,
    Severity,
    Verdict,
    check,
    skipped,
    unknown,
)
from bullpen.ops.doctor.installation import Installation

E = EVENTS.c

OLDEST_EVENT: Statement[tuple[int]] = Statement(
    lambda: select(E.created_at).order_by(E.id).limit(const(1))
)
NEWEST_EVENT: Statement[tuple[int]] = Statement(
    lambda: select(E.created_at).order_by(E.id.desc()).limit(const(1))
)


@check("reports.behind", Severity.WARNING, Needs.SCHEMA)
def behind(installation: Installation) -> Problem | Verdict:
    """The reports have not been computed for half of the time after which events are deleted."""
    settings = installation.settings
    if not settings.event_days:
        return skipped("events are kept forever")
    try:
        landed = _landed_until(settings.reports / "manifest.json")
    except (OSError, ValueError) as error:
        return unknown(f"the manifest of the reports cannot be read: {error}")
    if landed is None and (not settings.reports_minutes or find_spec("pyspark") is None):
        return skipped("reports are not computed here")
    with installation.store.read() as tx:
        oldest, newest = tx.one(OLDEST_EVENT, {}), tx.one(NEWEST_EVENT, {})
    if oldest is None or newest is None or (landed is not None and newest[0] <= landed):
        return PASSED
    missing_since = oldest[0] if landed is None else landed
    if installation.now - missing_since < settings.event_days * DAY // 2:
        return PASSED
    days = format_count((installation.now - missing_since) // DAY, "day")
    kept = format_count(settings.event_days, "day")
    return Problem(
        text=f"the events of the last {days} are not in the reports, and events are deleted after"
        f" {kept}",
        remedy="bullpen report run; or bullpen up, which starts the service `reports`",
    )


def _landed_until(manifest: Path) -> int | None:
    """The time until which the reports have all facts; None if they were never computed."""
    try:
        document = read_json(manifest.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    match document:
        case {"facts": {"events": {"covers_until": int() | None as until}}}:
            return until
    raise ValueError("it has another form")


CHECKS = (behind,)
