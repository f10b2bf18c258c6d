"""Counts that the processes of one API share, so that any of them can tell all of them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import psutil
from prometheus_client import Metric, values
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from prometheus_client.values import MultiProcessValue

from bullpen.core.settings import Settings

PREFIX = "metrics-"
KINDS = ("counter", "histogram", "gauge_livesum")
FILE_BYTES = 2 << 20
"""Taken from the disk beforehand: where it is full later on, nothing that is counted hits that."""


class SharedCounts(Collector):
    """What all the processes below one parent have counted, those that have ended included."""

    def __init__(self, settings: Settings) -> None:
        # The library asks for a directory of its own before it is imported, when none is known yet.
        parent = os.getppid()
        self._directory = settings.run / f"{PREFIX}{parent}"
        settings.run.mkdir(mode=0o700, parents=True, exist_ok=True)
        _sweep(settings.run)
        self._directory.mkdir(mode=0o700, exist_ok=True)
        for kind in KINDS:
            _reserve(self._directory / f"{kind}_{os.getpid()}.db")
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(self._directory)
        values.ValueClass = MultiProcessValue()  # type: ignore[no-untyped-call]
        self._files = MultiProcessCollector(None, str(self._directory))  # type: ignore[no-untyped-call]

    def describe(self) -> Iterable[Metric]:
        """Nothing beforehand."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """The sums."""
        for path in self._directory.glob("gauge_live*.db"):
            if not psutil.pid_exists(int(path.stem.rpartition("_")[2])):
                path.unlink(missing_ok=True)
        found: Iterable[Metric] = self._files.collect()  # type: ignore[no-untyped-call]
        return found


def _sweep(directory: Path) -> None:
    """Remove what is left of APIs that have ended."""
    for path in directory.glob(f"{PREFIX}*"):
        number = path.name.removeprefix(PREFIX)
        if number.isdecimal() and not psutil.pid_exists(int(number)):
            shutil.rmtree(path, ignore_errors=True)


def _reserve(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, FILE_BYTES)
    finally:
        os.close(descriptor)
