"""The service that runs the job on a schedule."""

from __future__ import annotations

from collections.abc import Iterator

import psutil
import pytest

from bullpen.core.clock import poll_until
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.ops.services import programs
from bullpen.reports.detached_run import RunState, RunStatus, run_status
from bullpen.reports.manifest import read_manifest
from bullpen.reports.periodic_run import ReportsService
from tests.reports.job.jobs import manifest
from tests.services.conftest import new_home
from tests.stores import Stores

LIMIT = 100.0
MOST_MEMORY = 110 << 20
"""Of the service between the runs."""


@pytest.fixture
def settings(stores: Stores) -> Settings:
    return stores.settings("sqlite", reports_minutes=60)


@pytest.fixture
def service(store: Store) -> Iterator[ReportsService]:
    """A service whose first run is due when it starts."""
    made = ReportsService(store, first_seconds=0)
    yield made
    made.stop()


def ended(settings: Settings) -> RunStatus | None:
    """The last run that was started in the background, when it has ended."""
    status = run_status(settings)
    return None if status.state in (RunState.NEVER, RunState.RUNNING) else status


def test_it_starts_a_run_that_is_due(store: Store, service: ReportsService) -> None:
    service.start()
    status = poll_until(lambda: ended(store.settings), LIMIT, 0.05)
    assert status is not None
    assert (status.state, status.error) == (RunState.COMPLETED, None)
    assert manifest(store).facts["events"].covers_until is not None


def test_zero_minutes_and_a_missing_package_leave_the_service_out(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def set_up(minutes: int) -> bool:
        (found,) = [each for each in programs.list_programs(settings) if each.name == "reports"]
        return found.set_up(Settings(reports_minutes=minutes))

    assert set_up(60)
    assert not set_up(0)
    monkeypatch.setattr(programs, "find_spec", lambda _: None)
    assert not set_up(60)


def test_up_starts_it_and_it_waits_without_java_and_without_much_memory() -> None:
    with new_home() as home:
        home.environ["BULLPEN_REPORTS_MINUTES"] = "60"
        home.ok("up")
        (found,) = [
            each for each in home("status", "--json").json["services"] if each["name"] == "reports"
        ]
        assert found["state"] == "RUNNING"
        process = psutil.Process(found["pid"])
        assert process.memory_info().rss < MOST_MEMORY
        assert process.children() == []
        home.ok("down")
        assert read_manifest(Settings(home=home.home).reports) is None
