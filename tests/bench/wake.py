"""wake: how soon a waiting process sees what another commits, and what waiting costs."""

from __future__ import annotations

import multiprocessing
import random
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from time import monotonic_ns

from sqlalchemy import bindparam, select

from bullpen.core.background import register_worker
from bullpen.core.models import MESSAGES
from bullpen.core.queue.enqueue import enqueue
from bullpen.core.settings import Settings
from bullpen.core.store.open import open_store
from bullpen.core.store.sqlite import SqliteStore
from bullpen.core.store.statement import Statement
from bullpen.core.wake.sqlite import Notifier
from tests.bench.idle import idle
from tests.bench.laps import message
from tests.bench.measure import Measure, Unit, quantile
from tests.bench.section import Bench, Section
from tests.bench.stores import KINDS

SETTLE_SECONDS = 1.0
"""By then the committing process has read who is to be woken."""
GAP = (0.002, 0.020)
LOST_GAP = (0.3, 1.2)
END = "end"

NEWER: Statement[tuple[int, str]] = Statement(
    lambda: (
        select(MESSAGES.c.id, MESSAGES.c.message)
        .where(MESSAGES.c.id > bindparam("last"))
        .order_by(MESSAGES.c.id)
    )
)


def wake(bench: Bench) -> Section:
    """Wake-ups with and without their hint, and an idle processor, on both stores."""
    measures: list[Measure] = []
    for kind in KINDS:
        seen = _latencies(bench, kind, bench.scale.wakes, GAP, hints=True)
        longest = f"max {max(seen):.2f} ms, {len(seen)} commits"
        measures += [
            Measure(f"wake-up, {kind}: p50", Unit.MILLIS, [quantile(seen, 0.5)]),
            Measure(f"wake-up, {kind}: p99", Unit.MILLIS, [quantile(seen, 0.99)], longest),
        ]
        lost = _latencies(bench, kind, bench.scale.lost_wakes, LOST_GAP, hints=False)
        middle = f"p50 {quantile(lost, 0.5):.0f} ms, {len(lost)} commits"
        measures.append(Measure(f"hint lost, {kind}: longest", Unit.MILLIS, [max(lost)], middle))
    return Section([*measures, *idle(bench)])


class StampedNotifier(Notifier):
    """Keeps the moment of the last wake-up, which is the moment after COMMIT."""

    at = 0

    def notify(self, topics: set[str]) -> None:
        """Keep the time, and notify."""
        self.at = monotonic_ns()
        super().notify(topics)


def wait(settings: Settings, hints: bool, pipe: Connection) -> None:
    """Wait for messages and keep when each was seen; runs in a process of its own."""
    store = open_store(settings)
    listener = store.listen()
    if hints:
        with store.write() as tx:
            register_worker(tx, "bench", listener.address)
    seen: list[tuple[str, int]] = []
    last = 0
    pipe.send("ready")
    while not seen or seen[-1][0] != END:
        listener.wait(60.0)
        with store.read() as tx:
            rows = tx.all(NEWER, {"last": last})
        now = monotonic_ns()
        seen += [(text, now) for _, text in rows]
        last = rows[-1][0] if rows else last
    listener.close()
    store.close()
    pipe.send(dict(seen))


def _latencies(
    bench: Bench, kind: str, count: int, gap: tuple[float, float], *, hints: bool
) -> list[float]:
    """Milliseconds from COMMIT's return here to the row's being read there."""
    settings = bench.stores.with_lanes(kind, 1)
    context = multiprocessing.get_context("forkserver")
    here, there = context.Pipe()
    waiter = context.Process(target=wait, args=(settings, hints, there), daemon=True)
    waiter.start()
    there.close()
    assert here.recv() == "ready"
    time.sleep(SETTLE_SECONDS)
    texts = [*map(str, range(count)), END]
    committed = _commit(settings, texts, gap, hints)
    seen: dict[str, int] = here.recv()
    waiter.join()
    return [(seen[text] - committed[text]) / 1e6 for text in texts[:-1]]


def _commit(
    settings: Settings, texts: Sequence[str], gap: tuple[float, float], hints: bool
) -> dict[str, int]:
    store = open_store(settings)
    notifier = None
    if isinstance(store, SqliteStore):
        notifier = store.notifier = StampedNotifier(store)
    committed = {}
    for text in texts:
        time.sleep(random.uniform(*gap))
        with store.write() as tx:
            enqueue(tx, message("agent0", text))
            if not hints:
                tx.topics.clear()
        now = monotonic_ns()
        committed[text] = now if notifier is None or not hints else notifier.at
    store.close()
    return committed
