"""depth: what a claim costs with 1 000 messages waiting and finished, and with a million."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import median

from bullpen.core.store.open import open_store
from tests.bench.laps import PHASES, Bullpen, Lap
from tests.bench.load import load
from tests.bench.measure import Measure, Unit
from tests.bench.race import MICRO
from tests.bench.rounds import interleave, ratios
from tests.bench.section import Bench, Section
from tests.bench.stores import KINDS

AGENTS = 20
LAPS = {1: 10, 32: 2}
"""How many laps of how many messages are in a turn."""


def depth(bench: Bench) -> Section:
    """Every transaction's time at each depth, on both stores."""
    return Section([each for kind in KINDS for each in _store(bench, kind)])


def _store(bench: Bench, kind: str) -> list[Measure]:
    depths = bench.scale.depths
    contenders = {count: _loaded(bench, kind, count) for count in depths}
    measures: list[Measure] = []
    for size, laps in LAPS.items():
        turns = {str(count): _turn(each, laps, size) for count, each in contenders.items()}
        results = interleave(turns, bench.scale.depth_rounds, bench.scale.warm_up)
        for index, phase in enumerate(PHASES):
            times = {
                count: [median(lap[index] for lap in laps) * MICRO for laps in results[str(count)]]
                for count in depths
            }
            measures += [
                Measure(f"{phase} {size}, {kind}: {_short(count)} waiting", Unit.MICROS, found)
                for count, found in times.items()
            ]
            growth = ratios(times[depths[-1]], times[depths[0]])
            note = f"{_short(depths[-1])} : {_short(depths[0])}, and as many finished"
            what = f"{phase} {size}, {kind}: deepest : shallowest"
            measures.append(Measure(what, Unit.RATIO, growth, note))
    for each in contenders.values():
        each.close()
    return measures


def _loaded(bench: Bench, kind: str, count: int) -> Bullpen:
    settings = bench.stores.with_lanes(kind, AGENTS)
    with bench.stores.opened(settings) as store:
        load(store, count, AGENTS)
    return Bullpen(open_store(settings))


def _turn(contender: Bullpen, laps: int, size: int) -> Callable[[], list[Lap]]:
    return lambda: contender.laps(laps, size)


def _short(count: int) -> str:
    thousands = math.log10(count) / 3
    return f"{count // 1_000_000} M" if thousands >= 2 else f"{count // 1_000} k"
