"""The bars: what Bullpen promises of its speed, and whether a measure keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from bullpen.core.registry import REPORTS
from tests.bench.measure import Measure
from tests.bench.stores import KINDS
from tests.channels.fakes.channels import FAKES


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


def _cycle(durability: str, cycle: float, batch: float) -> dict[str, Bar]:
    return {
        f"cycle, {durability}: bullpen : floor": least(cycle),
        f"cycle, {durability}: bullpen : huey": least(1),
        f"cycle, {durability}: bullpen : persist-queue": least(1),
        f"batch of 32, {durability}: bullpen : floor": least(batch),
        f"batch of 32, {durability}: bullpen : litequeue": least(1),
    }


def _processes(durability: str) -> dict[str, Bar]:
    return {
        f"8 processes, sqlite {durability}: duplicates": most(0),
        f"8 processes, sqlite {durability}: busy errors": most(0),
        f"8 processes, sqlite {durability}: p99.9 : p50": most(10),
    }


def _wake(store: str) -> dict[str, Bar]:
    return {
        f"wake-up, {store}: p50": most(5),
        f"wake-up, {store}: p99": most(20),
        f"hint lost, {store}: longest": most(1000),
        f"idle processor, {store}: CPU": most(1),
    }


def _on_each_store(what: str, bar: Bar) -> dict[str, Bar]:
    return {what.format(store): bar for store in KINDS}


def _channel(name: str) -> dict[str, Bar]:
    return {
        f"{name}: event to stored, p50": most(20),
        f"{name}: event to stored in a burst, p99": most(100),
        f"{name}: event to stored in many chats, p99": most(100),
        f"{name}: commit to call, p50": most(20),
        f"{name}: idle CPU": most(0.5),
    }


BARS_OF: Final[Mapping[str, Mapping[str, Bar]]] = {
    "cycle": {
        **_cycle("durable", cycle=0.5, batch=0.7),
        **_cycle("fast", cycle=0.35, batch=0.5),
        "cycle, durable: bullpen : tinyagi": least(2),
    },
    "postgres": {
        "cycle, postgresql: bullpen : procrastinate": least(1),
        "cycle, postgresql: bullpen : pgqueuer": least(1),
    },
    "processes": {**_processes("durable"), **_processes("fast")},
    "archiving": _on_each_store("8 processes, {}: p99 while archiving : p99", most(2)),
    "depth": _on_each_store("claim 1, {}: deepest : shallowest", most(1.5)),
    "wake": {**_wake("sqlite"), **_wake("postgresql")},
    "ticks": _on_each_store("nothing due, {}: p99", most(10)),
    "runs": {
        "added to a run, sqlite: p50": most(20),
        "50 runs at once: memory": most(150),
    },
    "streams": _on_each_store("streams, {}: p95", most(100)),
    "post": {
        "POST /api/message, 8 processes: p99": most(25),
        "POST /api/message : core's enqueue, 8 and 8": least(0.5),
    },
    "command": {
        "bullpen agent list: p50": most(150),
        "bullpen agent list : import": most(1.6),
        "a new home, `up` to the first answer": most(5),
    },
    "reports_start": {
        "start of Spark, full: archive : none": most(0.6),
        "start of Spark: small with archive : full without": most(0.6),
    },
    "channels": {
        what: bar
        for kind in KINDS
        for name in FAKES
        for what, bar in _channel(f"{name}, {kind}").items()
    },
    "reports_job": {
        "all reports beyond start, CPU: spark : duckdb": most(2.5),
        "all reports, wall: spark : pandas": most(1),
        "all reports, memory: spark : pandas": most(0.2),
        "landing, CPU: spark : duckdb": most(1.25),
        "1 % new, warm session, CPU : full run": most(0.1),
        "1 % new, fresh process, CPU : full run": most(0.15),
        "driver's memory : with 5 times fewer": most(1.15),
    },
    "reports_pages": {
        **{f"bullpen report show {name}: p50": most(300) for name in REPORTS.built_in},
        **{f"page {name}: p95": most(100) for name in ("overview", *REPORTS.built_in)},
    },
    "reports_source": {
        "data source, all columns: rows/s : bare cursor": least(0.55),
        "data source, five columns: rows/s : bare cursor": least(0.45),
    },
    "reports_writers": {
        **_on_each_store("8 writers, {}: p99 beside the job : alone", most(1.2)),
        "8 writers, sqlite: largest log beside the job : alone": most(1.2),
        "8 writers, postgresql: log per cycle beside the job : alone": most(1.2),
    },
}
"""By section, and by what they measure. A ratio of speeds above 1 is faster."""

BARS: Final[Mapping[str, Bar]] = {
    what: bar for bars in BARS_OF.values() for what, bar in bars.items()
}
