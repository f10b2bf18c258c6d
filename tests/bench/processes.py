"""processes: full cycles by several processes on one store, as processors and channels share it."""

from __future__ import annotations

import multiprocessing
import random
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from statistics import median
from time import perf_counter

from bullpen.core.errors import StoreBusy
from bullpen.core.message import Answer, Claim, Outcome
from bullpen.core.queue.claim import claim
from bullpen.core.queue.enqueue import enqueue
from bullpen.core.queue.finish import finish
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from tests.bench.laps import WORKER, message
from tests.bench.measure import Measure, Unit, quantile
from tests.bench.peers import PAYLOAD
from tests.bench.rounds import interleave
from tests.bench.section import Bench, Section
from tests.bench.stores import agent_names

AGENTS = 32
BACKLOG = 4 * AGENTS
"""Messages that wait from the start, so that a claim finds one in a lane that is free."""
START_SECONDS = 0.5
PARTS = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "max": 1.0}
OPERATIONS = ("cycle", "enqueue", "claim", "finish")


@dataclass(frozen=True, slots=True)
class Shift:
    """What one process did, or all of them together."""

    laps: list[tuple[float, float, float]]
    enqueued: list[str]
    claimed: list[str]
    busy: int
    empty: int

    def milliseconds(self, operation: str) -> list[float]:
        """How long each of these took."""
        if operation == "cycle":
            return [sum(lap) * 1e3 for lap in self.laps]
        index = OPERATIONS.index(operation) - 1
        return [lap[index] * 1e3 for lap in self.laps]


def processes(bench: Bench) -> Section:
    """Throughput, latency and mistakes of 1, 4 and 8 processes on each store."""
    scale = bench.scale
    stores = {
        "sqlite durable": filled(bench, "sqlite"),
        "sqlite fast": filled(bench, "sqlite", fast=True),
        "postgresql": filled(bench, "postgresql"),
    }
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(max(scale.processes), mp_context=context) as pool:
        list(pool.map(time.sleep, [1.0] * max(scale.processes)))  # all are there from now on
        turns = {
            f"{count} process{'es' if count > 1 else ''}, {name}": Turn(
                pool, settings, count, scale.process_seconds
            )
            for count in scale.processes
            for name, settings in stores.items()
        }
        results = interleave(turns, scale.process_rounds, warm_up=1)
    measures = [each for title, shifts in results.items() for each in _measures(title, shifts)]
    lost = [_lost(bench, settings) for settings in stores.values()]
    return Section(measures, {"every message was finished or still waits": not any(lost)})


def shift(settings: Settings, start_at: float, seconds: float, pause: float = 0.0) -> Shift:
    """Go laps from one moment to another, with pauses; runs in a process of its own."""
    store = open_store(settings)
    names = agent_names(AGENTS)
    done = Shift([], [], [], 0, 0)
    busy = empty = 0
    with store.read() as tx:
        tx.fetch("SELECT count(*) FROM lanes")
    time.sleep(max(0.0, start_at - time.monotonic()))
    while not done.laps or time.monotonic() < start_at + seconds:  # however late it comes
        try:
            started = perf_counter()
            with store.write() as tx:
                accepted = enqueue(tx, message(random.choice(names)))
            done.enqueued.append(accepted.message_id)
            enqueued = perf_counter()
            claimed, tries = _claim(store)
            empty += tries
            taken = perf_counter()
            done.claimed.extend(each.message_id for each in claimed.messages)
            with store.write() as tx:
                finish(tx, claimed.token, Outcome(answers=(Answer(message=PAYLOAD),)))
            finished = perf_counter()
        except StoreBusy:
            busy += 1
        else:
            done.laps.append((enqueued - started, taken - enqueued, finished - taken))
        if pause:
            time.sleep(random.uniform(0.5, 1.5) * pause)
    store.close()
    return Shift(done.laps, done.enqueued, done.claimed, busy, empty)


def _claim(store: Store) -> tuple[Claim, int]:
    """Claim one message; how often there was none is told too."""
    tries = 0
    while True:
        with store.write(durable=False) as tx:
            claimed = claim(tx, WORKER, limit=1)
        if claimed is not None:
            return claimed, tries
        tries += 1
        time.sleep(random.uniform(0.0002, 0.001))


def filled(bench: Bench, kind: str, *, fast: bool = False) -> Settings:
    """A store with a backlog, so that a claim finds something."""
    settings = bench.stores.with_lanes(kind, AGENTS, fast=fast)
    names = agent_names(AGENTS)
    with bench.stores.opened(settings) as store, store.write() as tx:
        for number in range(BACKLOG):
            enqueue(tx, message(names[number % AGENTS]))
    return settings


class Turn:
    """One turn of so many processes at once."""

    def __init__(
        self, pool: ProcessPoolExecutor, settings: Settings, count: int, seconds: float
    ) -> None:
        self._pool = pool
        self._settings = settings
        self._count = count
        self._seconds = seconds

    def __call__(self) -> list[Shift]:
        start_at = time.monotonic() + START_SECONDS
        futures = [
            self._pool.submit(shift, self._settings, start_at, self._seconds)
            for _ in range(self._count)
        ]
        return [each.result() for each in futures]


def _measures(title: str, turns: list[list[Shift]]) -> list[Measure]:
    shifts = [_together(each) for each in turns]
    details = {
        f"{operation} {name} ms": median(
            quantile(each.milliseconds(operation), part) for each in shifts
        )
        for operation in OPERATIONS
        for name, part in PARTS.items()
    }
    details["claims that found nothing"] = sum(each.empty for each in shifts)
    note = "cycle ms: " + ", ".join(f"{name} {details[f'cycle {name} ms']:.2f}" for name in PARTS)
    rates = [
        sum(len(part.laps) / sum(map(sum, part.laps)) for part in each if part.laps)
        for each in turns
    ]
    tails = [
        quantile(each.milliseconds("cycle"), 0.999) / quantile(each.milliseconds("cycle"), 0.5)
        for each in shifts
    ]
    claimed = Counter(id_ for each in shifts for id_ in each.claimed)
    return [
        Measure(f"{title}: cycles", Unit.RATE, rates, note, details),
        *(_operation(title, name, shifts) for name in OPERATIONS[1:]),
        Measure(f"{title}: p99.9 : p50", Unit.RATIO, tails),
        Measure(f"{title}: busy errors", Unit.COUNT, [sum(each.busy for each in shifts)]),
        Measure(
            f"{title}: duplicates",
            Unit.COUNT,
            [claimed.total() - len(claimed)],
            f"of {claimed.total()} claimed",
        ),
    ]


def _operation(title: str, operation: str, shifts: list[Shift]) -> Measure:
    times = [each.milliseconds(operation) for each in shifts]
    note = ", ".join(
        f"{name} {median(quantile(each, part) for each in times):.2f}"
        for name, part in PARTS.items()
        if name != "p50"
    )
    return Measure(
        f"{title}: {operation} p50", Unit.MILLIS, [quantile(each, 0.5) for each in times], note
    )


def _together(parts: list[Shift]) -> Shift:
    return Shift(
        [lap for part in parts for lap in part.laps],
        [id_ for part in parts for id_ in part.enqueued],
        [id_ for part in parts for id_ in part.claimed],
        sum(part.busy for part in parts),
        sum(part.empty for part in parts),
    )


def _lost(bench: Bench, settings: Settings) -> int:
    """How many messages are neither completed nor waiting, or are not answered just once."""
    with bench.stores.opened(settings) as store, store.read() as tx:
        adrift = tx.fetch(
            "SELECT count(*) FROM messages WHERE status NOT IN ('pending', 'completed')"
        )
        unanswered = tx.fetch(
            "SELECT (SELECT count(*) FROM messages WHERE status = 'completed')"
            " - (SELECT count(DISTINCT message_id) FROM responses)"
        )
        twice = tx.fetch("SELECT count(*) - count(DISTINCT message_id) FROM responses")
    return sum(abs(int(str(row[0]))) for row in (adrift, unanswered, twice) if row is not None)
