"""streams: how soon hundreds who follow the events have each of them, and what that costs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from bullpen.core.company import add_agent
from bullpen.core.roster.agents import Agent
from tests.api.served import Served, serving, start_api
from tests.bench.measure import Measure, Unit, quantile
from tests.bench.section import Bench, Section
from tests.bench.stores import KINDS
from tests.streams.crowd import Heard, crowd
from tests.streams.load import Work, work

AGENT = "assistant"
RATE = 50.0
SETTLE_SECONDS = 1.0


def streams(bench: Bench) -> Section:
    """Events at a steady rate to SSE and WebSocket clients on this machine, on each store."""
    measures: list[Measure] = []
    checks = {}
    for kind in KINDS:
        found, complete = _followed(bench, kind)
        measures += found
        checks[f"streams, {kind}: every event to every one, in order"] = complete
    return Section(measures, checks)


def _followed(bench: Bench, kind: str) -> tuple[list[Measure], bool]:
    sse, ws = bench.scale.streams
    settings = bench.stores.settings(kind)
    with bench.stores.opened(settings) as store, store.write() as tx:
        add_agent(tx, Agent(id=AGENT))
    with bench.stores.opened(settings) as store, serving(settings, start_api) as served:
        work(store, AGENT, seconds=SETTLE_SECONDS, rate=RATE)
        before = _memory(served)
        began = time.monotonic()
        with crowd(served.url, served.token, sse=sse, ws=ws) as people:
            connected = time.monotonic() - began
            time.sleep(SETTLE_SECONDS)
            each = (_memory(served) - before) / (sse + ws)
            used = _used(served)
            done = work(store, AGENT, seconds=bench.scale.stream_seconds, rate=RATE)
            cpu = 100 * (_used(served) - used) / done.seconds
            heard = people.hear(done.last)
    who = f"{sse} SSE and {ws} WebSocket clients, there within {connected:.1f} s"
    load = f"of one CPU; {settings.api_processes} processes"
    return [
        *_delays(kind, heard, done),
        Measure(f"streams, {kind}: CPU", Unit.PERCENT, [cpu], load),
        Measure(f"streams, {kind}: memory per client", Unit.KIB, [each], who),
    ], done.complete(heard)


def _delays(kind: str, heard: Sequence[Heard], done: Work) -> list[Measure]:
    found = done.milliseconds(heard)
    rate = f"{len(done.committed)} events, {done.rate:.0f} a second"
    longest = f"p99 {quantile(found, 0.99):.1f} ms, max {max(found):.1f} ms"
    return [
        Measure(f"streams, {kind}: p50", Unit.MILLIS, [quantile(found, 0.5)], rate),
        Measure(f"streams, {kind}: p95", Unit.MILLIS, [quantile(found, 0.95)], longest),
    ]


def _used(served: Served) -> float:
    times = [each.cpu_times() for each in served.workers]
    return sum(float(each.user + each.system) for each in times)


def _memory(served: Served) -> float:
    """KiB; what processes share is counted once."""
    lines = [
        line.split()
        for each in served.workers
        for line in Path(f"/proc/{each.pid}/smaps_rollup").read_text().splitlines()
    ]
    return float(sum(int(line[1]) for line in lines if line[0] == "Pss:"))
