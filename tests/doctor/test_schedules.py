"""What is to happen by itself: schedules and heartbeats that stopped, or that nobody fires."""

from __future__ import annotations

from sqlalchemy import update

from bullpen.core.clock import HOUR, SystemClock
from bullpen.core.models import HEARTBEATS, SCHEDULES
from bullpen.core.outbox.hold import begin_hold
from tests.cli.command import Bullpen
from tests.conformance.verbs import do
from tests.doctor.examined import fine, found, seen, store_of

ADD = ("schedule", "add", "hello", "--agent", "coder", "--cron", "0 9 * * *", "--to", "nowhere")


def test_schedules_that_stopped_by_themselves(on_both: Bullpen) -> None:
    on_both.ok("agent", "add", "coder")
    on_both.ok(*ADD, "--label", "morning")
    on_both.ok("schedule", "pause", "morning")
    fine(on_both, "schedule.paused")  # somebody said so
    on_both.ok("schedule", "resume", "morning")
    on_both.ok("agent", "remove", "coder", "--yes")
    text = found(on_both, "schedule.paused", "warning")
    assert "morning" in text
    assert "removed" in text


def test_schedules_that_nobody_fires(on_both: Bullpen) -> None:
    on_both.ok("agent", "add", "coder")
    on_both.ok(*ADD)
    fine(on_both, "schedule.late")
    with store_of(on_both) as store:
        with store.engine.begin() as connection:
            connection.execute(update(SCHEDULES).values(due_at=SystemClock().now() - HOUR))
        assert "by up to 60 minutes" in found(on_both, "schedule.late", "warning")
        do(store, begin_hold, "restored")
    assert seen(on_both, "schedule.late")["state"] == "skipped"


def test_a_heartbeat_that_failed_too_often(on_both: Bullpen) -> None:
    on_both.ok("agent", "add", "coder")
    on_both.ok("heartbeat", "on", "coder")
    fine(on_both, "heartbeat.paused")
    with store_of(on_both) as store, store.engine.begin() as connection:
        paused = {"state": "paused", "reason": "3 beats in a row failed", "due_at": None}
        connection.execute(update(HEARTBEATS).values(paused))
    assert "3 beats in a row failed" in found(on_both, "heartbeat.paused", "warning")
