"""A run in the background: one at a time, with its state, also after its end."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from bullpen.core.clock import poll_until
from bullpen.core.errors import NoSpark, ReportsRunning
from bullpen.core.files import file_lock
from bullpen.core.settings import Settings
from bullpen.reports import detached_run
from bullpen.reports.detached_run import RUN_LOCK, RunState, RunStatus, run_status, start_run

LIMIT = 60.0
LASTING = ("events", "--follow", "--json")


@pytest.fixture
def settings(stores: object, tmp_path: Path) -> Iterator[Settings]:
    """A home whose processes are ended after the test."""
    yield Settings(home=tmp_path)
    for each in psutil.Process().children():
        if str(tmp_path) in each.environ().get("BULLPEN_HOME", ""):
            each.kill()


def ended(settings: Settings) -> RunStatus:
    poll_until(lambda: run_status(settings).state is not RunState.RUNNING, LIMIT, 0.05)
    return run_status(settings)


def test_a_run_is_completed_when_it_has_printed_its_document(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_status(settings) == RunStatus(state=RunState.NEVER)
    monkeypatch.setattr(detached_run, "COMMAND", ("version", "--json"))
    assert start_run(settings, 17) == RunStatus(state=RunState.RUNNING, started_at=17)
    status = ended(settings)
    assert (status.state, status.started_at) == (RunState.COMPLETED, 17)
    assert status.finished_at is not None


def test_a_failed_run_has_its_error_and_hint(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detached_run, "COMMAND", ("config", "get", "no_such", "--json"))
    start_run(settings, 17)
    status = ended(settings)
    assert status.state is RunState.FAILED
    assert status.error is not None
    assert "no_such" in status.error
    assert status.hint


def test_a_run_that_could_not_compute_a_report_has_failed(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detached_run, "COMMAND", ("version", "--json"))
    start_run(settings, 17)
    ended(settings)
    (settings.run / detached_run.OUTPUT).write_text('{"run": 2, "failed": ["latency"]}')
    status = run_status(settings)
    assert (status.state, status.error) == (RunState.FAILED, "not computed: latency")


def followers() -> list[psutil.Process]:
    """The runs below this process that have not ended."""
    return [each for each in psutil.Process().children() if "--follow" in each.cmdline()]


def test_only_one_run_at_a_time_and_a_killed_one_has_failed(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detached_run, "COMMAND", LASTING)
    start_run(settings, 17)
    assert run_status(settings) == RunStatus(state=RunState.RUNNING, started_at=17)
    with pytest.raises(ReportsRunning):
        start_run(settings, 18)
    # A program has no arguments for a moment after its start.
    (process,) = poll_until(followers, LIMIT, 0.02)
    assert process.nice() == detached_run.NICENESS
    if (group := Path(f"/proc/{process.pid}/autogroup")).exists():
        assert group.read_text().split()[-1] == f"{detached_run.NICENESS}"
    assert os.getsid(process.pid) == process.pid
    process.send_signal(signal.SIGKILL)
    status = ended(settings)
    assert status.state is RunState.FAILED
    assert status.error == "the run ended without a result"


def test_a_run_of_somebody_else_is_seen_by_its_lock(settings: Settings) -> None:
    settings.reports.mkdir()
    with file_lock(settings.reports / RUN_LOCK):
        assert run_status(settings) == RunStatus(state=RunState.RUNNING)
        with pytest.raises(ReportsRunning):
            start_run(settings, 17)
    assert run_status(settings).state is RunState.NEVER


def test_another_process_with_the_same_number_is_not_the_run(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.run.mkdir()
    record = {"pid": os.getpid(), "created": 12.5, "started_at": 17}
    (settings.run / detached_run.RECORD).write_text(json.dumps(record))
    assert run_status(settings).state is RunState.FAILED


def test_without_spark_the_error_says_what_to_type(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detached_run, "find_spec", lambda _: None)
    with pytest.raises(NoSpark) as raised:
        start_run(settings, 17)
    assert "make reports" in raised.value.hint
