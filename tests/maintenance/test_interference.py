"""What writers notice of the archive: next to nothing. The bench has the larger numbers."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import pytest

from bullpen.core.maintenance.retention import PAUSE_FACTOR, in_batches
from bullpen.core.queue.enqueue import enqueue
from bullpen.core.queue.lanes import create_lane
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.transaction import Transaction
from tests.bench.archiving import move
from tests.bench.laps import message
from tests.bench.load import load_finished
from tests.bench.measure import quantile
from tests.bench.processes import AGENTS, shift
from tests.bench.stores import agent_names
from tests.stores import Stores

WRITERS = 3
FINISHED = 60_000
SECONDS = 1.5
ROUNDS, MORE_ROUNDS = 4, 8
MOST = 2.5
"""The bench's bar is 2, of longer rounds on a machine that does nothing else."""


@pytest.fixture
def settings(stores: Stores, kind: str) -> Settings:
    """A store with a backlog, and with much that is to be archived."""
    made = stores.settings(kind)
    with stores.opened(made) as store:
        with store.write() as tx:
            for name in agent_names(AGENTS):
                create_lane(tx, name)
                for _ in range(4):
                    enqueue(tx, message(name))
        load_finished(store, FINISHED, AGENTS)
    return made


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    """Processes that are there."""
    with ProcessPoolExecutor(WRITERS + 1, multiprocessing.get_context("spawn")) as made:
        list(made.map(time.sleep, [0.5] * (WRITERS + 1)))
        yield made


class Writers:
    """Processes that enqueue, claim and finish, each time for so many seconds."""

    def __init__(self, pool: ProcessPoolExecutor, settings: Settings) -> None:
        self._pool = pool
        self._settings = settings

    def work(self, seconds: float, *, archiving: bool = False) -> list[float]:
        """How long their cycles took, in milliseconds."""
        given = (self._settings, time.monotonic() + 0.3, seconds)
        moving = self._pool.submit(move, *given) if archiving else None
        shifts = [self._pool.submit(shift, *given) for _ in range(WRITERS)]
        assert moving is None or moving.result() > 0
        return [each for done in shifts for each in done.result().milliseconds("cycle")]


@pytest.mark.bench
def test_writers_hardly_notice_that_much_is_archived(
    settings: Settings, pool: ProcessPoolExecutor
) -> None:
    writers = Writers(pool, settings)
    writers.work(0.1)  # everything is loaded from now on
    ratios: list[float] = []
    # What the machine does besides makes rounds worse, and none better.
    while len(ratios) < ROUNDS or (min(ratios) > MOST and len(ratios) < MORE_ROUNDS):
        without, beside = (writers.work(SECONDS, archiving=each) for each in (False, True))
        ratios.append(quantile(beside, 0.99) / quantile(without, 0.99))
    assert min(ratios) <= MOST, ratios


@pytest.mark.one_store
def test_after_a_batch_comes_a_longer_rest(store: Store) -> None:
    left = [3]

    def step(_: Transaction) -> int:
        time.sleep(0.03)
        left[0] -= 1
        return left[0]

    began = time.monotonic()
    assert in_batches(store, step, PAUSE_FACTOR) == 3
    took = time.monotonic() - began
    assert took >= 3 * 0.03 + 2 * 0.03 * PAUSE_FACTOR
    assert took < 5.0
