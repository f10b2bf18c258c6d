"""Schedules that tests make, and what became of them."""

from __future__ import annotations

from typing import Any

from bullpen.core.clock import HOUR
from bullpen.core.models import SCHEDULE_RUNS
from bullpen.core.outbox.addresses import NOWHERE
from bullpen.core.schedules.fire import fire_due_schedules
from bullpen.core.schedules.manage import add_schedule
from bullpen.core.schedules.model import OWNER_AUTHOR, NewSchedule, Schedule, get_schedule
from bullpen.core.schedules.timing import every_timing
from bullpen.core.store.base import Store
from tests.conformance.verbs import AGENT, Row, rows
from tests.stores import FakeClock


def new(store: Store, **more: Any) -> NewSchedule:  # noqa: ANN401
    """Each hour, to the one agent that there is, if nothing else is said."""
    given = {
        "message": "look at the build",
        "timing": every_timing(HOUR, "UTC", store.clock.now()),
        "place": NOWHERE,
        **({} if "team_id" in more else {"agent": AGENT}),
        **more,
    }
    return NewSchedule(**given)


def plan(store: Store, author: str = OWNER_AUTHOR, **more: Any) -> Schedule:  # noqa: ANN401
    """Make one."""
    with store.write() as tx:
        return add_schedule(tx, new(store, **more), author)


def see(store: Store, name: str) -> Schedule:
    """One as it is."""
    with store.read() as tx:
        return get_schedule(tx, name)


def wait(store: Store, clock: FakeClock, milliseconds: int = HOUR) -> None:
    """Let time pass, and the scheduler look."""
    clock.advance(milliseconds)
    while fire_due_schedules(store) == 0.0:
        pass


def runs(store: Store, schedule: Schedule) -> list[Row]:
    """What became of its due times."""
    return [row for row in rows(store, SCHEDULE_RUNS) if row["schedule_id"] == schedule.id]


def outcomes(store: Store, schedule: Schedule) -> list[str]:
    """The same in a word each."""
    return [str(row["outcome"]) for row in runs(store, schedule)]
