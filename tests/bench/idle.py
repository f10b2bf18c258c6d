"""What a processor costs that has nothing to do."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil

from bullpen.core.settings import Settings
from tests.bench.measure import Measure, Unit
from tests.bench.section import Bench
from tests.bench.stores import KINDS

READY_SECONDS = 60.0
COMMAND = (sys.executable, "-c", "from bullpen.cli.main import main; main()", "run", "processor")


def idle(bench: Bench) -> list[Measure]:
    """The processor time of `bullpen run processor` on each store, in parts of a CPU."""
    scale = bench.scale
    with ExitStack() as stack:
        processes = {
            kind: stack.enter_context(running(bench.stores.with_lanes(kind, 1))) for kind in KINDS
        }
        time.sleep(scale.idle_warm_up)
        started = time.monotonic()
        before = {kind: used(each) for kind, each in processes.items()}
        time.sleep(scale.idle_seconds)
        taken = {kind: used(each) - before[kind] for kind, each in processes.items()}
        passed = time.monotonic() - started
    return [
        Measure(
            f"idle processor, {kind}: CPU",
            Unit.PERCENT,
            [100 * seconds / passed],
            f"in {passed:.0f} s",
        )
        for kind, seconds in taken.items()
    ]


@contextmanager
def running(settings: Settings, **more: str) -> Iterator[psutil.Process]:
    """A processor of these settings, in a process of its own."""
    environ = {
        **os.environ,
        "BULLPEN_HOME": str(settings.home),
        "BULLPEN_WORKSPACE": str(settings.workspace),
        "BULLPEN_DATABASE_URL": settings.database_url,
        **more,
    }
    with (settings.home / "processor.log").open("wb") as log:
        process = subprocess.Popen(COMMAND, env=environ, stdout=log, stderr=log)
    try:
        _wait(process, settings.home / "processor.log")
        yield psutil.Process(process.pid)
        if process.poll() is not None:
            raise RuntimeError((settings.home / "processor.log").read_text())
    finally:
        process.terminate()
        process.wait()


def _wait(process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while "is ready" not in log.read_text():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(log.read_text())
        time.sleep(0.05)


def used(process: psutil.Process) -> float:
    """The processor time of a process in seconds."""
    times = process.cpu_times()
    return float(times.user + times.system)
