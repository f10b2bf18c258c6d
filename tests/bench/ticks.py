"""ticks: what it costs a scheduler to look at 10 000 schedules, and to let one of them fire."""

from __future__ import annotations

import time
from itertools import count

from bullpen.core.clock import DAY, SECOND
from bullpen.core.outbox.addresses import NOWHERE
from bullpen.core.schedules.fire import fire_due_schedules
from bullpen.core.schedules.manage import add_schedule
from bullpen.core.schedules.model import NewSchedule, OverlapPolicy
from bullpen.core.schedules.timing import MissedPolicy, every_timing
from bullpen.core.store.base import Store
from tests.bench.measure import Measure, Unit, quantile
from tests.bench.section import Bench, Section
from tests.bench.stores import KINDS
from tests.conformance.verbs import hire
from tests.stores import START, FakeClock

AGENTS = 20
IDLE = 50
"""Ticks in a round at which nothing is due, and schedules in one that fire."""


def ticks(bench: Bench) -> Section:
    """On both stores, by a clock that only this moves."""
    return Section([each for kind in KINDS for each in _store(bench, kind)])


def _store(bench: Bench, kind: str) -> list[Measure]:
    clock = FakeClock()
    scale = bench.scale
    idle: list[list[float]] = []
    fired: list[float] = []
    with bench.stores.opened(bench.stores.settings(kind), clock) as store:
        _fill(store, scale.schedules)
        for _ in range(scale.rounds):
            idle.append([_milliseconds(store) for _ in range(IDLE)])
            clock.advance(IDLE * SECOND)  # one of them is due each second
            fired.append(_milliseconds(store) / IDLE)
            _milliseconds(store)
    title = f"tick of {scale.schedules} schedules, {kind}"
    return [
        Measure(f"{title}: nothing due, p50", Unit.MILLIS, [quantile(each, 0.5) for each in idle]),
        Measure(f"nothing due, {kind}: p99", Unit.MILLIS, [quantile(each, 0.99) for each in idle]),
        Measure(f"{title}: each that fires", Unit.MILLIS, fired),
    ]


def _fill(store: Store, schedules: int) -> None:
    for number in range(AGENTS):
        hire(store, f"agent{number}")
    numbers = count()
    for _ in range(schedules // 100):
        with store.write() as tx:
            for number in (next(numbers) for _ in range(100)):
                add_schedule(
                    tx,
                    NewSchedule(
                        message="look at the build",
                        agent=f"agent{number % AGENTS}",
                        timing=every_timing(DAY, "UTC", START - DAY + (number + 1) * SECOND),
                        place=NOWHERE,
                        missed=MissedPolicy.ALL,
                        overlap=OverlapPolicy.SKIP,
                    ),
                )


def _milliseconds(store: Store) -> float:
    began = time.perf_counter()
    fire_due_schedules(store)
    return (time.perf_counter() - began) * 1000
