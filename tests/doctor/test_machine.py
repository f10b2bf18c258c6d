"""The machine: its disks and its clock."""

from __future__ import annotations

import pytest

from bullpen.core.clock import HOUR, SystemClock
from bullpen.ops.doctor import machine
from tests.cli.command import Bullpen
from tests.conformance.verbs import hire
from tests.doctor.examined import fine, found, look_at, seen, store_of
from tests.stores import FakeClock


def test_little_room(bullpen: Bullpen, monkeypatch: pytest.MonkeyPatch) -> None:
    fine(bullpen, "disk.space")
    # No test fills a disk: let what there is be little, and then nothing.
    monkeypatch.setattr(machine, "LOW_BYTES", 1 << 60)
    said = look_at(bullpen, machine.disk_space)
    assert (said.state, said.severity) == ("found", "warning")
    monkeypatch.setattr(machine, "CRITICAL_BYTES", 1 << 60)
    assert look_at(bullpen, machine.disk_space).severity == "critical"


def test_a_clock_that_was_set_back(on_both: Bullpen) -> None:
    with store_of(on_both, FakeClock(SystemClock().now())) as store:
        hire(store)
    fine(on_both, "clock.back")
    with store_of(on_both, FakeClock(SystemClock().now() + HOUR)) as store:
        hire(store, "later")
    text = found(on_both, "clock.back", "warning")
    assert "359" in text or "3600" in text


def test_a_server_with_another_time(
    on_both: Bullpen, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "sqlite":
        assert seen(on_both, "clock.skew")["state"] == "skipped"
        return
    fine(on_both, "clock.skew")
    # The server of the tests has this machine's clock: so let no difference be small enough.
    monkeypatch.setattr(machine, "CLOCK_TOLERANCE_MS", -1)
    assert look_at(on_both, machine.clock_skew).state == "found"
