"""The bars: what Bullpen promises of its speed, and whether a measure keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tests.bench.measure import Measure


@dataclass(frozen=True, slots=True)
class Bar:
    """The least or the most that a value may be."""

    limit: float
    least: bool

    def __str__(self) -> str:
        return f"{'>=' if self.least else '<='} {self.limit:g}"

    def verdict(self, measure: Measure) -> str:
        """PASS or MISS."""
        value = measure.value
        kept = value >= self.limit if self.least else value <= self.limit
        return "PASS" if kept else "MISS"


def least(limit: float) -> Bar:
    """At least so much."""
    return Bar(limit, least=True)


def most(limit: float) -> Bar:
    """At most so much."""
    return Bar(limit, least=False)


def _sqlite(durability: str, cycle: float, batch: float) -> dict[str, Bar]:
    return {
        f"cycle, {durability}: bullpen : floor": least(cycle),
        f"cycle, {durability}: bullpen : huey": least(1),
        f"cycle, {durability}: bullpen : persist-queue": least(1),
        f"batch of 32, {durability}: bullpen : floor": least(batch),
        f"batch of 32, {durability}: bullpen : litequeue": least(1),
        f"8 processes, sqlite {durability}: duplicates": most(0),
        f"8 processes, sqlite {durability}: busy errors": most(0),
        f"8 processes, sqlite {durability}: p99.9 : p50": most(10),
    }


def _either(store: str) -> dict[str, Bar]:
    return {
        f"claim 1, {store}: deepest : shallowest": most(1.5),
        f"nothing due, {store}: p99": most(10),
        f"wake-up, {store}: p50": most(5),
        f"wake-up, {store}: p99": most(20),
        f"hint lost, {store}: longest": most(1000),
        f"idle processor, {store}: CPU": most(1),
        f"streams, {store}: p95": most(100),
        f"8 processes, {store}: p99 while archiving : p99": most(2),
    }


BARS: Final[Mapping[str, Bar]] = {
    **_sqlite("durable", cycle=0.5, batch=0.7),
    **_sqlite("fast", cycle=0.35, batch=0.5),
    "cycle, durable: bullpen : tinyagi": least(2),
    "cycle, postgresql: bullpen : procrastinate": least(1),
    "cycle, postgresql: bullpen : pgqueuer": least(1),
    "added to a run, sqlite: p50": most(20),
    "50 runs at once: memory": most(150),
    "POST /api/message, 8 processes: p99": most(25),
    "POST /api/message : core's enqueue, 8 and 8": least(0.5),
    "bullpen agent list: p50": most(150),
    "bullpen agent list : import": most(1.6),
    "a new home, `up` to the first answer": most(5),
    **_either("sqlite"),
    **_either("postgresql"),
}
"""By what they measure. A ratio of speeds above 1 is faster."""
