"""What runs said of their progress goes after a day; every other event stays."""

from __future__ import annotations

from bullpen.core.clock import HOUR
from bullpen.core.events.append import append_event
from bullpen.core.events.base import Event, MessageRef
from bullpen.core.events.conversation import AgentProgress, ChainStepDone, ChainStepStart
from bullpen.core.events.system import ProcessorStart, ProcessorStop
from bullpen.core.maintenance.retention import run_retention
from bullpen.core.store.base import Store
from tests.conformance.verbs import events
from tests.stores import FakeClock

ABOUT = MessageRef("coder", "api_1", "api_1")
STARTED = ChainStepStart(ABOUT, provider="echo", messages=["api_1"], batch=None)
PROGRESS = AgentProgress(ABOUT, text="…")
DONE = ChainStepDone(ABOUT, messages=["api_1"], responses=1)


def say(store: Store, *events: Event) -> None:
    """Record these events."""
    for event in events:
        with store.write() as tx:
            append_event(tx, event)


def test_old_progress_is_deleted_and_nothing_else(store: Store, clock: FakeClock) -> None:
    say(store, STARTED, PROGRESS, DONE)
    clock.advance(store.settings.retention_hours * HOUR)
    say(store, PROGRESS)
    assert run_retention(store, "progress") == "1 progress event deleted"
    assert [row["type"] for row in events(store)] == [
        *("chain_step_start", "chain_step_done", "agent_progress"),
    ]


def test_progress_is_kept_for_as_long_as_people_may_look(store: Store, clock: FakeClock) -> None:
    say(store, PROGRESS, ProcessorStop(worker="w"))
    clock.advance(store.settings.retention_hours * HOUR - 1)
    assert run_retention(store, "progress") == "0 progress events deleted"


def test_the_newest_event_stays_so_that_no_id_is_given_twice(
    store: Store, clock: FakeClock
) -> None:
    say(store, PROGRESS, PROGRESS)
    newest = events(store)[-1]["id"]
    clock.advance(100 * store.settings.retention_hours * HOUR)
    assert run_retention(store, "progress") == "1 progress event deleted"
    say(store, ProcessorStart(worker="w"))
    assert [row["id"] for row in events(store)] == [newest, newest + 1]
