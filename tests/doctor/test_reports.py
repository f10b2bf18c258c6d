"""The reports: whether the job reads the events before they are deleted."""

from __future__ import annotations

from bullpen.core.clock import DAY, SystemClock
from bullpen.core.settings import Settings
from bullpen.reports.manifest import MANIFEST, FactTableState, Manifest, write_manifest
from tests.cli.command import Bullpen
from tests.conformance.verbs import hire, send
from tests.doctor.examined import fine, found, seen, store_of
from tests.stores import FakeClock

HOURLY = {"BULLPEN_REPORTS_MINUTES": "60"}


def now() -> int:
    """The machine's time."""
    return SystemClock().now()


def landed(bullpen: Bullpen, at: int) -> None:
    """The job has read everything until then."""
    directory = Settings(home=bullpen.home).reports
    directory.mkdir(exist_ok=True)
    facts = {name: FactTableState(upto=1, covers_until=at) for name in ("attempts", "events")}
    write_manifest(directory, Manifest(store="s", zone="UTC", facts=facts))


def test_reports_that_lag_by_half_of_the_retention_are_a_warning(on_both: Bullpen) -> None:
    fine(on_both, "reports.behind", **HOURLY)
    with store_of(on_both, FakeClock(now() - 20 * DAY)) as store:
        hire(store)
        send(store)
    assert "last 20 days" in found(on_both, "reports.behind", "warning", **HOURLY)
    assert seen(on_both, "reports.behind")["state"] == "skipped", "reports are not in use"
    fine(on_both, "reports.behind", **HOURLY, BULLPEN_EVENT_DAYS="60")
    landed(on_both, now() - 19 * DAY)
    fine(on_both, "reports.behind")  # nothing has happened since
    with store_of(on_both) as store:
        send(store)
    assert "last 19 days" in found(on_both, "reports.behind", "warning")
    landed(on_both, now() - DAY)
    fine(on_both, "reports.behind")
    (Settings(home=on_both.home).reports / MANIFEST).write_text("{}")
    assert seen(on_both, "reports.behind")["state"] == "unknown"
