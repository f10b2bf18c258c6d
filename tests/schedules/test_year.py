"""A year goes by, with outages, restarts and clocks that are set: each due time counts once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bullpen.core.clock import DAY, HOUR, MINUTE, SECOND
from bullpen.core.models import SCHEDULE_RUNS
from bullpen.core.outbox.addresses import NOWHERE
from bullpen.core.schedules.fire import fire_due_schedules
from bullpen.core.schedules.manage import (
    add_schedule,
    pause_schedule,
    remove_schedule,
    resume_schedule,
)
from bullpen.core.schedules.model import (
    NewSchedule,
    OverlapPolicy,
    Schedule,
    ScheduleState,
    get_schedule,
    list_schedules,
)
from bullpen.core.schedules.timing import (
    MissedPolicy,
    Timing,
    cron_timing,
    every_timing,
    once_timing,
)
from bullpen.core.settings import Durability
from bullpen.core.store.base import Store
from tests.conformance.verbs import do, done, hire, rows, try_claim
from tests.schedules.year import Page
from tests.stores import START, FakeClock, Stores

TIMES = float(os.environ.get("BULLPEN_TEST_EXAMPLES") or 1)
EXAMPLES = {"sqlite": 30, "postgresql": 8}
YEAR = 366 * DAY
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "America/Santiago", "Australia/Sydney")
CRONS = (
    *("30 2 * * *", "0 9 * * 1-5", "15 0 1 * *", "0 */8 * * *", "0 0 29 2 *", "45 1 * * 0"),
    *("*/10 2 * 3,4,10,11 0", "0,30 2 * * 6,0", "0 12 31 * *", "59 23 * * *"),
)

TIMINGS = st.one_of(
    st.tuples(st.just("cron"), st.sampled_from(CRONS), st.sampled_from(ZONES)),
    st.tuples(st.just("every"), st.integers(5 * 60, 20 * 24 * 60), st.just("UTC")),
    st.tuples(st.just("once"), st.integers(1, 400 * 24 * 60), st.just("UTC")),
)
NEW = st.tuples(TIMINGS, st.sampled_from(MissedPolicy), st.sampled_from(OverlapPolicy))


@dataclass(frozen=True)
class Step:
    """Something happens, and then so much time passes."""

    what: str
    minutes: int
    which: int = 0


STEPS = st.lists(
    st.builds(
        Step,
        what=st.sampled_from(
            (
                *("work", "work", "work", "idle", "outage", "outage"),
                *("back", "forward", "restart", "pause", "resume"),
            )
        ),
        minutes=st.one_of(st.integers(0, 90), st.integers(0, 60 * 24 * 40)),
        which=st.integers(0, 3),
    ),
    min_size=5,
    max_size=25,
)


class Office:
    """Two schedulers on one store, and people who answer or do not."""

    def __init__(self, first: Store, second: Store, clock: FakeClock) -> None:
        self.stores = [first, second]
        self.clock = clock
        self.pages: dict[str, Page] = {}
        self.end = START + 3 * YEAR

    def add(self, given: tuple[tuple[str, str | int, str], MissedPolicy, OverlapPolicy]) -> None:
        (kind, value, zone), missed, overlap = given
        timing = _timing(kind, value, zone, self.clock.now())
        # Each has an agent of its own, so that it is known whose message is through.
        agent = f"agent{len(self.pages)}"
        new = NewSchedule(
            message="do it",
            agent=agent,
            timing=timing,
            place=NOWHERE,
            missed=missed,
            overlap=overlap,
        )
        with self.stores[0].write() as tx:
            made = add_schedule(tx, new)
        self.pages[made.id] = Page.begin(timing, missed, overlap, self.end)

    def tick(self, *, answered: bool) -> None:
        """Both look; what they put into the queue is answered, or not."""
        now = self.clock.now()
        for page in self.pages.values():
            page.tick(now)
        for store in self.stores:
            while fire_due_schedules(store) == 0.0:
                pass
        if answered:
            self.answer()

    def answer(self) -> None:
        store = self.stores[0]
        while (found := try_claim(store)) is not None:
            done(store, found.token)
        for page in self.pages.values():
            page.open = False

    def run(self, until: int, *, answered: bool) -> None:
        """Schedulers run: they look whenever something is due."""
        while True:
            self.tick(answered=answered)
            due = [p.due for p in self.pages.values() if p.due is not None and not p.paused]
            following = min((each for each in due if each > self.clock.now()), default=until)
            if following >= until:
                break
            # Not to the millisecond, as no process is.
            late = following // SECOND * 7919 % (MINUTE + 1)
            self.clock.advance(following + late - self.clock.now())
        self.clock.advance(max(0, until - self.clock.now()))

    def step(self, step: Step) -> None:
        now = self.clock.now()
        until = min(now + step.minutes * MINUTE, START + YEAR)
        names = list(self.pages)
        name = names[step.which % len(names)]
        match step.what:
            case "work" | "idle":
                self.run(until, answered=step.what == "work")
            case "outage":
                self.clock.advance(until - now)
            case "forward":
                self.clock.advance(min(step.minutes, 60 * 24) * MINUTE)
            case "back":
                self.clock.advance(-min(step.minutes, 60 * 24) * MINUTE)
            case "restart":
                self.stores.reverse()
            case "pause":
                if self._state(name) is ScheduleState.ACTIVE:
                    do(self.stores[0], pause_schedule, name)
                    self.pages[name].paused = True
            case "resume":
                if self.pages[name].paused and self.pages[name].timing.after(self.clock.now()):
                    do(self.stores[0], resume_schedule, name)
                    self.pages[name].resume(self.clock.now())

    def _state(self, name: str) -> ScheduleState:
        with self.stores[0].read() as tx:
            return get_schedule(tx, name).state


def _timing(kind: str, value: str | int, zone: str, now: int) -> Timing:
    if isinstance(value, str):
        return cron_timing(value, zone, now)
    if kind == "every":
        return every_timing(value * MINUTE, zone, now)
    return once_timing(now + value * MINUTE, zone, now)


@contextmanager
def offices(stores: Stores, kind: str) -> Iterator[tuple[Store, Store, FakeClock]]:
    """Two processes' stores on one database, whose clock is the test's."""
    clock = FakeClock()
    made = stores.settings(kind, durability=Durability.FAST)
    with ExitStack() as stack:
        first, second = (stack.enter_context(stores.opened(made, clock)) for _ in range(2))
        for number in range(4):
            hire(first, f"agent{number}")
        yield first, second, clock


def clean(store: Store, clock: FakeClock, now: int) -> None:
    """Nothing is scheduled and nothing waits; the clock shows this."""
    with store.write() as tx:
        for schedule in list_schedules(tx):
            remove_schedule(tx, schedule.id)
    while (found := try_claim(store)) is not None:
        done(store, found.token)
    clock.advance(now - clock.now())


def check(store: Store, name: str, page: Page) -> None:
    """The store's account of a schedule is the book's."""
    runs = [row for row in rows(store, SCHEDULE_RUNS) if row["schedule_id"] == name]
    by = {
        outcome: [row for row in runs if row["outcome"] == outcome]
        for outcome in ("fired", "skipped", "missed")
    }
    assert [row["due_at"] for row in by["fired"]] == page.fired
    assert [row["due_at"] for row in by["skipped"]] == page.skipped
    found = [(row["due_at"], row["until"], row["times"]) for row in by["missed"]]
    assert found == page.dropped
    assert all(row["fired_at"] >= row["due_at"] for row in runs), "one was early"
    assert len({row["due_at"] for row in runs}) == len(runs), "one was twice"
    messages = [row["message_id"] for row in by["fired"]]
    assert all(messages)
    assert len(set(messages)) == len(messages)


@pytest.mark.slow
@pytest.mark.timeout(600 + 300 * TIMES)
@pytest.mark.one_store
def test_every_due_time_of_a_year_counts_once_by_its_policy(stores: Stores, kind: str) -> None:
    with offices(stores, kind) as (first, second, clock):

        @settings(
            max_examples=max(1, round(EXAMPLES[kind] * TIMES)),
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        )
        @given(st.lists(NEW, min_size=1, max_size=4), STEPS, st.integers(0, 365))
        def year(news: list[tuple[tuple[str, str | int, str], MissedPolicy, OverlapPolicy]],
                 steps: list[Step], day: int) -> None:  # fmt: skip
            clean(first, clock, START + day * DAY // 12)
            office = Office(first, second, clock)
            for new in news:
                office.add(new)
            for step in steps:
                office.step(step)
            # To the end of the year, in great steps, and once more without an outage.
            office.step(Step("outage", 60 * 24 * 30))
            office.run(min(clock.now() + 60 * DAY, START + YEAR), answered=True)
            clock.advance(max(0, START + YEAR - clock.now()))
            office.tick(answered=True)
            for name, page in office.pages.items():
                check(first, name, page)

        year()


def _schedule(store: Store, missed: MissedPolicy, timing: Timing) -> Schedule:
    hire(store)
    new = NewSchedule(message="x", agent="coder", timing=timing, place=NOWHERE, missed=missed)
    with store.write() as tx:
        return add_schedule(tx, new)


def test_after_a_long_absence_all_is_a_hundred_and_says_what_it_dropped(
    store: Store, clock: FakeClock
) -> None:
    made = _schedule(store, MissedPolicy.ALL, every_timing(HOUR, "UTC", clock.now()))
    begin = clock.now()
    clock.advance(YEAR + 1)
    while fire_due_schedules(store) == 0.0:
        pass
    runs = rows(store, SCHEDULE_RUNS)
    dropped, *fired = sorted(runs, key=lambda row: row["outcome"] == "fired")
    hours = YEAR // HOUR
    assert dropped["times"] == hours - 100
    assert dropped["due_at"] == begin + HOUR
    assert dropped["until"] == begin + (hours - 100) * HOUR
    assert [row["due_at"] for row in fired] == [
        begin + hour * HOUR for hour in range(hours - 99, hours + 1)
    ]
    with store.read() as tx:
        assert get_schedule(tx, made.id).due_at == begin + (hours + 1) * HOUR


@pytest.mark.parametrize("missed", list(MissedPolicy))
def test_a_year_of_minutes_that_nobody_saw_is_decided_in_a_moment(
    store: Store, clock: FakeClock, missed: MissedPolicy
) -> None:
    _schedule(store, missed, cron_timing("* * * * *", "Europe/Berlin", clock.now()))
    clock.advance(YEAR)
    while fire_due_schedules(store) == 0.0:
        pass
    (dropped,) = (row for row in rows(store, SCHEDULE_RUNS) if row["outcome"] == "missed")
    assert "more than 10000" in dropped["reason"]
    assert clock.now() - dropped["until"] < 2 * DAY
