"""The service that runs the job on a schedule."""

from __future__ import annotations

from collections.abc import Iterator

import psutil
import pytest

from bullpen.core.clock import HOUR, poll_until
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.identity import store_id
from bullpen.ops.services import programs
from bullpen.reports import detached_run
from bullpen.reports.detached_run import RunState, RunStatus, run_status
from bullpen.reports.facts.position import last_id
from bullpen.reports.facts.tables import EVENTS
from bullpen.reports.manifest import FactTableState, Manifest, read_manifest, write_manifest
from bullpen.reports.periodic_run import ReportsService
from tests.reports.job.facts import SPRING, write_messages
from tests.reports.job.jobs import manifest
from tests.services.conftest import new_home
from tests.stores import FakeClock, Stores

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


def test_after_a_failure_with_nothing_new_the_next_run_is_a_day_later(
    store: Store, service: ReportsService, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report that always fails would start Spark every hour."""
    monkeypatch.setattr(detached_run, "COMMAND", ("config", "get", "no_such", "--json"))
    write_messages(store, [SPRING])
    store.settings.reports.mkdir()
    with store.read() as tx:
        landed = {"events": FactTableState(upto=last_id(store, EVENTS))}
        write_manifest(
            store.settings.reports, Manifest(store=store_id(tx), zone="UTC", facts=landed)
        )

    def is_started() -> bool:
        """Whether a run starts now; waits for its end."""
        service.step()
        status = poll_until(lambda: ended(store.settings), LIMIT, 0.05)
        if status is None or status.started_at != clock.now():
            return False
        assert status.state is RunState.FAILED
        service.step()
        return True

    assert is_started()
    for hours in (1, 22):
        clock.advance(hours * HOUR)
        assert not is_started()
    clock.advance(HOUR)
    assert is_started()
    write_messages(store, [SPRING + 1])
    clock.advance(HOUR)
    assert is_started()


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
