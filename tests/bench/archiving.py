"""archiving: full cycles by eight processes while finished messages leave, and while none do."""

from __future__ import annotations

import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor

from bullpen.core.maintenance.retention import ARCHIVE_MESSAGES, PAUSE_FACTOR, in_batches
from bullpen.core.settings import Settings
from bullpen.core.store.open import open_store
from bullpen.core.store.transaction import Transaction
from tests.bench.load import load_finished
from tests.bench.measure import Measure, Unit, quantile
from tests.bench.processes import AGENTS, START_SECONDS, Shift, filled, shift
from tests.bench.rounds import interleave, ratios
from tests.bench.section import Bench, Section
from tests.bench.stores import KINDS

COUNT = 8
PARTS = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}


def archiving(bench: Bench) -> Section:
    """What a writer notices of it, on both stores."""
    scale = bench.scale
    measures: list[Measure] = []
    checks: dict[str, bool] = {}
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(COUNT + 1, mp_context=context) as pool:
        list(pool.map(time.sleep, [1.0] * (COUNT + 1)))  # all are there from now on
        for kind in KINDS:
            settings = filled(bench, kind)
            with bench.stores.opened(settings) as store:
                load_finished(store, scale.archived, AGENTS)
            turns = {
                name: ArchivingTurn(pool, settings, scale.process_seconds, archives=archives)
                for name, archives in (("without", False), ("with", True))
            }
            results = interleave(turns, scale.process_rounds, warm_up=1)
            moved = [count for _, count in results["with"]]
            measures += _measures(kind, scale.process_seconds, results)
            checks[f"{kind}: messages were archived all the while"] = min(moved) > 0
    return Section(measures, checks)


def move(settings: Settings, start_at: float, seconds: float) -> int:
    """Archive from one moment to another, as the system agent does; gives how many."""
    store = open_store(settings)
    begun = False

    def step(tx: Transaction) -> int:
        nonlocal begun
        if begun and time.monotonic() >= start_at + seconds:
            return 0
        begun = True  # however late it comes, there is a first batch
        return ARCHIVE_MESSAGES.remove_batch(tx)

    time.sleep(max(0.0, start_at - time.monotonic()))
    moved = in_batches(store, step, PAUSE_FACTOR)
    store.close()
    return moved


class ArchivingTurn:
    """One turn of eight processes, and of a ninth that archives or not."""

    def __init__(
        self, pool: ProcessPoolExecutor, settings: Settings, seconds: float, *, archives: bool
    ) -> None:
        self._pool = pool
        self._settings = settings
        self._seconds = seconds
        self._archives = archives

    def __call__(self) -> tuple[list[Shift], int]:
        given = (self._settings, time.monotonic() + START_SECONDS, self._seconds)
        moving = self._pool.submit(move, *given) if self._archives else None
        shifts = [self._pool.submit(shift, *given) for _ in range(COUNT)]
        return [each.result() for each in shifts], 0 if moving is None else moving.result()


def _measures(
    kind: str, seconds: float, results: dict[str, list[tuple[list[Shift], int]]]
) -> list[Measure]:
    title = f"8 processes, {kind}:"
    found: dict[str, dict[str, list[float]]] = {}
    for name, turns in results.items():
        times = [
            [each for part in parts for each in part.milliseconds("cycle")] for parts, _ in turns
        ]
        found[name] = {
            what: [quantile(each, part) for each in times] for what, part in PARTS.items()
        }
    moved = [count / seconds for _, count in results["with"]]
    shown = {"without": "cycle", "with": "cycle while archiving"}
    return [
        *(
            Measure(f"{title} {shown[name]} {what}", Unit.MILLIS, values)
            for name, each in found.items()
            for what, values in each.items()
        ),
        *(
            Measure(
                f"{title} {what} while archiving : {what}",
                Unit.RATIO,
                ratios(found["with"][what], found["without"][what]),
            )
            for what in PARTS
        ),
        Measure(f"{title} archived meanwhile", Unit.RATE, moved),
    ]
