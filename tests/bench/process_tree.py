"""What a process and all processes below it use: processor time, and memory at its highest."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import psutil

SAMPLE_SECONDS = 0.2
KIB = 1024


@dataclass(frozen=True, slots=True)
class Used:
    """The use since the meter began."""

    cpu: float
    """Seconds of the processor, of processes that have ended as well.

    One that ended between two samples counts up to the first of them.
    """
    wall: float

    def __sub__(self, other: Used) -> Used:
        return Used(self.cpu - other.cpu, self.wall - other.wall)


class TreeMeter:
    """Measures this process and those below it."""

    def __init__(self) -> None:
        self._me = psutil.Process()
        self._began = time.monotonic()
        self._seen: dict[int, float] = {}
        self._sampling = 0.0
        """The processor time of the thread that samples, which is no part of the work."""
        self._before = self._cpu()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self.memory = 0.0
        """The most that all of them had at once, in MiB; shared pages count once."""
        self.driver_memory = 0.0
        """The same of this process and of Java alone."""

    def __enter__(self) -> TreeMeter:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()

    def used(self) -> Used:
        """The use until now."""
        return Used(self._cpu() - self._before, time.monotonic() - self._began)

    def _cpu(self) -> float:
        """The processor time of all processes so far.

        The time of a process that has ended is what it was last seen with: not every parent waits
        for its children, so their times may be in nobody's sum.
        """
        for each in (self._me, *self._me.children(recursive=True)):
            with suppress(psutil.Error):
                times = each.cpu_times()
                self._seen[each.pid] = times.user + times.system
        return sum(list(self._seen.values())) - self._sampling

    def _sample(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            self._cpu()
            below = self._me.children(recursive=True)
            own = _proportional(self._me.pid)
            sizes = {each.pid: _proportional(each.pid) for each in below}
            java = 0.0
            for each in below:
                with suppress(psutil.Error):
                    java += sizes[each.pid] if each.name() == "java" else 0.0
            self.memory = max(self.memory, own + sum(sizes.values()))
            self.driver_memory = max(self.driver_memory, own + java)
            self._sampling = time.thread_time()


def _proportional(pid: int) -> float:
    """The memory of a process in MiB, with its part of what it shares."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / KIB
    return 0.0
