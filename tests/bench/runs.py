"""runs: what Bullpen adds to a run of a command line, and what fifty at once take."""

from __future__ import annotations

import os
import stat
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import perf_counter

import psutil

from bullpen.core.company import add_agent
from bullpen.core.queue.claim import claim
from bullpen.core.queue.enqueue import enqueue
from bullpen.core.roster.agents import Agent
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from bullpen.processor.children.child import Launcher, Stop
from bullpen.processor.execute import RunExecutor
from bullpen.processor.plugins import Plugins
from bullpen.processor.providers.registry import Providers
from tests.bench.idle import running
from tests.bench.laps import message
from tests.bench.measure import Measure, Unit, quantile
from tests.bench.section import Bench, Section
from tests.bench.stores import KINDS, agent_names

ANSWER = """#!/bin/sh
cat >/dev/null
echo '{"type":"assistant","message":{"content":[{"type":"text","text":"done"}]}}'
echo '{"type":"result","is_error":false,"result":"done","session_id":"s"}'
"""
WAIT = "#!/bin/sh\nexec sleep 1000\n"
AT_ONCE = 50
READY_SECONDS = 120.0


def runs(bench: Bench) -> Section:
    """The overhead of one run on each store, and the memory of many at once."""
    return Section([*(_overhead(bench, kind) for kind in KINDS), _memory(bench)])


def _overhead(bench: Bench, kind: str) -> Measure:
    """From claim to committed finish, less what the same program takes when it is run by hand."""
    settings = _company(bench, kind, 1)
    program = _install(settings, ANSWER)
    os.environ["PATH"] = f"{program.parent}:{os.environ['PATH']}"
    launcher = Launcher()
    added = []
    with bench.stores.opened(settings) as store:
        answering = RunExecutor(store, Providers(settings, launcher).get, Plugins())
        for number in range(bench.scale.runs + 2):
            by_hand = _timed(
                lambda: subprocess.run([program], input=b"hello", check=True, capture_output=True)
            )
            with store.write() as tx:
                enqueue(tx, message("agent0", f"{number}"))
            added.append(_timed(lambda: _run(store, answering)) - by_hand)
    launcher.stop()
    os.environ["PATH"] = os.environ["PATH"].removeprefix(f"{program.parent}:")
    found = [seconds * 1000 for seconds in added[2:]]  # the first starts the fork server
    note = f"p95 {quantile(found, 0.95):.1f} ms, {len(found)} runs"
    return Measure(f"added to a run, {kind}: p50", Unit.MILLIS, [quantile(found, 0.5)], note)


def _run(store: Store, answering: RunExecutor) -> None:
    with store.write(durable=False) as tx:
        claimed = claim(tx, "bench")
    assert claimed is not None
    stop = Stop()
    answering(claimed, stop)
    stop.close()


def _memory(bench: Bench) -> Measure:
    """What a processor with so many runs holds in all, its children taken off."""
    count = AT_ONCE
    settings = _company(bench, "sqlite", count)
    program = _install(settings, WAIT)
    more = {"BULLPEN_MAX_RUNS": str(count), "BULLPEN_GRACE_SECONDS": "0"}
    path = f"{program.parent}:{os.environ['PATH']}"
    with running(settings, **more, PATH=path) as processor:
        store = open_store(settings)
        with store.write() as tx:
            for name in agent_names(count):
                enqueue(tx, message(name, "wait"))
        store.close()
        deadline = time.monotonic() + READY_SECONDS
        while len(sleeping(processor)) < count:
            if time.monotonic() > deadline:
                raise RuntimeError(f"only {len(sleeping(processor))} of {count} runs began")
            time.sleep(0.05)
        ours = [processor, *_keepers(processor)]
        used = sum(_proportional(process.pid) for process in ours)
    note = f"{len(ours)} processes; shared pages counted once"
    return Measure(f"{count} runs at once: memory", Unit.MIB, [used], note)


def sleeping(processor: psutil.Process) -> list[psutil.Process]:
    """The children of the runs."""
    found = []
    for each in processor.children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # a child that has just ended is none of them
            if each.name() == "sleep":
                found.append(each)
    return found


def _keepers(processor: psutil.Process) -> list[psutil.Process]:
    children = {each.pid for each in sleeping(processor)}
    return [each for each in processor.children(recursive=True) if each.pid not in children]


def _proportional(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def _company(bench: Bench, kind: str, agents: int) -> Settings:
    settings = bench.stores.settings(kind)
    with bench.stores.opened(settings) as store, store.write() as tx:
        for name in agent_names(agents):
            add_agent(tx, Agent(id=name, provider="claude"))
    return settings


def _install(settings: Settings, text: str) -> Path:
    program = settings.home / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(text)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


def _timed(what: Callable[[], object]) -> float:
    started = perf_counter()
    what()
    return perf_counter() - started
