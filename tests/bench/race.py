"""A race: contenders in interleaved rounds, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import Protocol, TypedDict

from tests.bench.laps import PHASES, Lap
from tests.bench.measure import Measure, Unit, quantile
from tests.bench.peers import Peer
from tests.bench.rounds import interleave, ratios
from tests.bench.scale import Scale

MICRO = 1e6


class Latency(TypedDict):
    """A note on how long laps take, and its numbers."""

    note: str
    details: dict[str, float]


class Contender(Protocol):
    """Who can go laps of one message and of several."""

    name: str

    def laps(self, count: int, size: int) -> list[Lap]:
        """Go so many laps with so many messages each."""
        ...

    def close(self) -> None:
        """Let go of the database."""
        ...


class PeerContender:
    """A peer, whose laps have no phases, and whose batches are timed together."""

    def __init__(self, peer: Peer) -> None:
        self.name = peer.name
        self._peer = peer

    def laps(self, count: int, size: int) -> list[Lap]:
        """Go so many laps with so many messages each."""
        if size == 1:
            return [(each,) for each in self._peer.cycle(count)]
        return [(self._peer.batch(count * size, size) / count,)] * count

    def close(self) -> None:
        """Close the peer."""
        self._peer.close()


def open_peers(openers: Mapping[str, Callable[[], Peer]], missing: list[str]) -> list[Contender]:
    """The peers whose libraries are there; the others' names are added to `missing`."""
    found: list[Contender] = []
    for name, opener in openers.items():
        try:
            found.append(PeerContender(opener()))
        except ImportError as error:
            missing.append(f"{name} ({error})")
    return found


def race(
    title: str, contenders: Sequence[Contender], scale: Scale, count: int, size: int
) -> tuple[list[Measure], dict[str, list[list[Lap]]]]:
    """Every contender's messages in a second, and Bullpen's speed in parts of theirs."""
    turns = {each.name: _turn(each, count, size) for each in contenders}
    results = interleave(turns, scale.rounds, scale.warm_up)
    speeds = {
        name: [count * size / sum(map(sum, laps)) for laps in turns]
        for name, turns in results.items()
    }
    measures = [
        Measure(f"{title}: {name}", Unit.RATE, speeds[name], **_latency(results[name], size))
        for name in speeds
    ]
    measures += [
        Measure(f"{title}: bullpen : {name}", Unit.RATIO, ratios(speeds["bullpen"], speeds[name]))
        for name in speeds
        if name != "bullpen"
    ]
    return measures, results


def phases(
    title: str,
    size: int,
    results: Mapping[str, list[list[Lap]]],
    which: Sequence[str] = PHASES,
) -> Iterator[Measure]:
    """How long Bullpen's transactions take, beside the floor's."""
    for name in which:
        index = PHASES.index(name)
        ours, floor = (_phase(results[who], index) for who in ("bullpen", "floor"))
        part = median(ratios(floor, ours))
        note = f"floor {median(floor):.0f} us; {part:.2f} of its speed"
        details = {"floor us": median(floor), "part of the floor's speed": part}
        yield Measure(f"{name} {size}, {title}", Unit.MICROS, ours, note, details)


def _turn(contender: Contender, count: int, size: int) -> Callable[[], list[Lap]]:
    return lambda: contender.laps(count, size)


def _phase(turns: list[list[Lap]], index: int) -> list[float]:
    return [median(lap[index] for lap in laps) * MICRO for laps in turns]


def _latency(turns: list[list[Lap]], size: int) -> Latency:
    laps = [sum(lap) * MICRO for turn in turns for lap in turn]
    middle, tail = quantile(laps, 0.5), quantile(laps, 0.99)
    # The middle of the rounds leaves out most checkpoints; this does not.
    whole = len(laps) * size * MICRO / sum(laps)
    return {
        "note": f"a lap: p50 {middle:.0f} us, p99 {tail:.0f} us; over all {whole:.0f} /s",
        "details": {"lap p50 us": middle, "lap p99 us": tail, "over all /s": whole},
    }
