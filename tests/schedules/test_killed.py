"""Three schedulers on one store, killed at random: each due time fires once, and none is lost."""

from __future__ import annotations

import os
import random
import time
from collections import Counter

import pytest

from bullpen.core.clock import SECOND
from bullpen.core.models import MESSAGES, SCHEDULE_RUNS
from bullpen.core.outbox.addresses import NOWHERE
from bullpen.core.schedules.manage import add_schedule, pause_schedule
from bullpen.core.schedules.model import NewSchedule, OverlapPolicy, Schedule
from bullpen.core.schedules.timing import MissedPolicy, Timing, TimingKind
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from tests.conformance.verbs import do, hire, rows
from tests.crash.children import Children, until
from tests.schedules.body import look
from tests.stores import Stores

SCHEDULERS = 3
KILLS = 40
SECONDS = 12
INTERVALS = (130, 400, 1000)


def begin(store: Store, chance: random.Random) -> list[Schedule]:
    """Some that are due once, at any moment of the next seconds, and some again and again."""
    with store.write() as tx:
        now = tx.now
        times = [
            Timing(kind=TimingKind.ONCE, at=now + chance.randrange(1, SECONDS * SECOND), anchor=now)
            for _ in range(200)
        ]
        times += [Timing(kind=TimingKind.EVERY, every=each, anchor=now) for each in INTERVALS]
        return [
            add_schedule(
                tx,
                NewSchedule(
                    message="it is time",
                    agent="coder",
                    timing=timing,
                    place=NOWHERE,
                    missed=MissedPolicy.ALL,
                    overlap=OverlapPolicy.QUEUE,
                ),
            )
            for timing in times
        ]


@pytest.mark.slow
def test_schedulers_that_are_killed_at_random_fire_each_due_time_once(
    stores: Stores, settings: Settings, children: Children
) -> None:
    chance = random.Random(os.urandom(8))
    with stores.opened(settings) as store:
        hire(store)
        made = begin(store, chance)
        workers = [children.start(look, settings) for _ in range(SCHEDULERS)]
        for _ in range(KILLS):
            time.sleep(chance.uniform(0, 2 * SECONDS / KILLS))
            place = chance.randrange(SCHEDULERS)
            workers[place].kill()
            workers[place] = children.start(look, settings)
        once = [each for each in made if each.timing.kind is TimingKind.ONCE]
        until(lambda: _fired(store).keys() >= {each.id for each in once}, "all have fired")
        for each in made[len(once) :]:
            until(lambda: _fired(store)[each.id] > _least(each), "it fired again and again")  # noqa: B023
            do(store, pause_schedule, each.id)
        for worker in workers:
            worker.kill()
        runs = rows(store, SCHEDULE_RUNS)
        messages = [row["message_id"] for row in rows(store, MESSAGES)]
    assert sorted(messages) == sorted(row["message_id"] for row in runs)
    assert {row["outcome"] for row in runs} == {"fired"}
    assert all(row["fired_at"] >= row["due_at"] for row in runs)
    for each in once:
        assert [row["due_at"] for row in runs if row["schedule_id"] == each.id] == [each.timing.at]
    for each in made[len(once) :]:
        dues = [row["due_at"] for row in runs if row["schedule_id"] == each.id]
        assert dues == [
            each.timing.anchor + n * (each.timing.every or 0) for n in range(1, len(dues) + 1)
        ]
        assert len(dues) > _least(each)


def _least(each: Schedule) -> float:
    return SECONDS * SECOND / 2 / (each.timing.every or 1)


def _fired(store: Store) -> Counter[str]:
    return Counter(str(row["schedule_id"]) for row in rows(store, SCHEDULE_RUNS))
