"""The parts of a long-running process: loops, signals, and its row in the table of workers."""

from __future__ import annotations

import logging
import os
import select as system_select
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sqlalchemy import bindparam, delete, func, insert, select, update

from bullpen.core.clock import SECOND
from bullpen.core.errors import BullpenError
from bullpen.core.events.append import append_event
from bullpen.core.events.system import ProcessEvent
from bullpen.core.models import WORKERS
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.wake.listener import WakeupDispatcher

log = logging.getLogger(__name__)

LIVENESS_SECONDS = 20
LOST_AFTER_SECONDS = 3 * LIVENESS_SECONDS
"""A worker without a sign of life for this time is deleted. Its claims end with their leases."""

STOP_SECONDS = 30.0

LoopStep = Callable[[], float]
"""Does one step of the work, and returns the seconds to wait before the next one."""


class StopSignals:
    """Receives SIGTERM and SIGINT from its creation, so that none is lost during a start."""

    def __init__(self) -> None:
        # Python runs a handler when its main thread executes bytecode, which a thread that has just
        # started to read does not. The interrupted thread itself writes the byte, in any case.
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._write_end, False)
        signal.set_wakeup_fd(self._write_end)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for a signal for at most this time; true if there was one."""
        ready, _, _ = system_select.select([self._read_end], [], [], seconds)
        return bool(ready)

    def set(self) -> None:
        """Stop the process from inside, as a signal does."""
        os.write(self._write_end, b"x")


class Loop:
    """Runs a step in its own thread, when it is woken and when its wait ends."""

    def __init__(self, name: str, step: LoopStep, retry_seconds: float = 1.0) -> None:
        self.name = name
        self._step = step
        self._retry = retry_seconds
        self._woken = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wake(self) -> None:
        """Run the step now, because there may be work."""
        self._woken.set()

    def stop(self, timeout: float = 30.0) -> bool:
        """Run no further step; true if the current one ended within the time."""
        self._stopping.set()
        self._woken.set()
        if self._thread.ident is not None:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            # In this order, so that a stop between the two is not lost.
            self._woken.clear()
            if self._stopping.is_set():
                return
            try:
                wait = self._step()
            except BullpenError as error:
                log.warning("%s: %s (%s)", self.name, error, error.hint)
                wait = self._retry
            except Exception:
                log.exception("%s failed; retrying", self.name)
                wait = self._retry
            self._woken.wait(wait)


class WorkerProcess:
    """A long-running process: its row in `workers`, its wake-ups, its loops, and how it stops.

    It registers when it is created. Each start of a process is a new worker with a new id.
    """

    def __init__(
        self,
        store: Store,
        kind: str,
        *,
        started: type[ProcessEvent] | None = None,
        stopped: type[ProcessEvent] | None = None,
    ) -> None:
        self._store = store
        self._kind = kind
        self._stopped = stopped
        self._listener = store.listen()
        self._dispatcher = WakeupDispatcher(self._listener)
        self._loops = [Loop("liveness", self._report_liveness)]
        with store.write() as tx:
            self.worker = register_worker(tx, kind, self._listener.address)
            if started is not None:
                append_event(tx, started(worker=self.worker))

    def add(self, loop: Loop, *topics: str) -> Loop:
        """Add a loop, which commits on these topics wake; it runs as long as the process."""
        self._loops.append(loop)
        for topic in topics:
            self.on(topic, loop.wake)
        return loop

    def on(self, topic: str, callback: Callable[[], None]) -> None:
        """Call this at each commit on the topic. Only before `start`."""
        self._dispatcher.subscribe(topic, callback)

    def start(self) -> None:
        """Start to listen, and all loops."""
        self._dispatcher.start()
        for loop in self._loops:
            loop.start()
        log.info("%s is ready", self.worker)

    def stop(
        self,
        seconds: float = STOP_SECONDS,
        release: Callable[[Transaction, str], None] | None = None,
    ) -> None:
        """Stop the loops within this time, and unregister; `release` releases the worker's leases.

        A step that takes longer ends with the process.
        """
        for loop in self._loops:
            loop.stop(0)
        deadline = time.monotonic() + seconds
        for loop in self._loops:
            if not loop.stop(max(0.0, deadline - time.monotonic())):
                log.warning("%s did not stop in time", loop.name)
        self._dispatcher.stop()
        with self._store.write(durable=self._stopped is not None) as tx:
            if release is not None:
                release(tx, self.worker)
            unregister_worker(tx, self.worker)
            if self._stopped is not None:
                append_event(tx, self._stopped(worker=self.worker))
        log.info("%s has stopped", self.worker)

    def _report_liveness(self) -> float:
        with self._store.write(durable=False) as tx:
            if not report_liveness(tx, self.worker):
                self.worker = register_worker(tx, self._kind, self._listener.address)
        return float(LIVENESS_SECONDS)


class Service(Protocol):
    """A service that `run_until_stopped` can run."""

    def start(self) -> None:
        """Start the service."""
        ...

    def stop(self) -> None:
        """Stop the service."""
        ...


def run_until_stopped(make: Callable[[], Service]) -> None:
    """Create and start the service, and stop it at SIGTERM or SIGINT."""
    signals = StopSignals()
    service = make()
    service.start()
    signals.wait()
    service.stop()


W = WORKERS.c

INSERT_WORKER: Statement[None] = Statement(
    lambda: insert(WORKERS).values({column.name: bindparam(column.name) for column in W})
)

UPDATE_LIVENESS: Statement[None] = Statement(
    lambda: update(WORKERS).where(W.id == bindparam("worker")).values(heartbeat_at=bindparam("now"))
)

DELETE_WORKER: Statement[None] = Statement(
    lambda: delete(WORKERS).where(W.id == bindparam("worker"))
)

# There are as many rows as processes; an index would be larger than the table.
DELETE_LOST_WORKERS: Statement[tuple[str | None, str, str, int, int]] = Statement(
    lambda: (
        delete(WORKERS)
        .where(W.heartbeat_at <= bindparam("silent_since"))
        .returning(W.wake, W.kind, W.host, W.pid, W.heartbeat_at)
    )
)

LIST_WORKERS: Statement[tuple[str, int]] = Statement(
    lambda: select(W.id, W.pid).where(W.kind == bindparam("kind"), W.host == bindparam("host"))
)

COUNT_LIVE_WORKERS: Statement[tuple[str, int]] = Statement(
    lambda: (
        select(W.kind, func.count())
        .where(W.heartbeat_at > bindparam("silent_since"))
        .group_by(W.kind)
        .order_by(W.kind)
    )
)


@dataclass(frozen=True, slots=True)
class LostWorker:
    """A process that no longer reports its liveness."""

    kind: str
    host: str
    pid: int
    silent_seconds: int


def register_worker(tx: Transaction, kind: str, wake: str | None = None) -> str:
    """Insert a row for this process, and return its new id."""
    worker = tx.ids.new(kind)
    tx.write(
        INSERT_WORKER,
        {
            "id": worker,
            "kind": kind,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "wake": wake,
            "started_at": tx.now,
            "heartbeat_at": tx.now,
        },
    )
    return worker


def report_liveness(tx: Transaction, worker: str) -> bool:
    """Update the worker's time; false if its row was deleted and it must register again."""
    return tx.change(UPDATE_LIVENESS, {"worker": worker, "now": tx.now}) == 1


def unregister_worker(tx: Transaction, worker: str) -> None:
    """Delete the worker's row."""
    tx.write(DELETE_WORKER, {"worker": worker})


def count_live_workers(tx: Transaction) -> dict[str, int]:
    """How many processes of each kind are alive."""
    rows = tx.all(COUNT_LIVE_WORKERS, {"silent_since": tx.now - LOST_AFTER_SECONDS * SECOND})
    return {kind: count for kind, count in rows}  # noqa: C416 - rows, not pairs


def ended_workers(tx: Transaction, kind: str) -> list[str]:
    """The workers of a kind whose processes on this host have ended without unregistering."""
    import psutil  # only here: commands that count live workers start without it

    rows = tx.all(LIST_WORKERS, {"kind": kind, "host": socket.gethostname()})
    return [worker for worker, pid in rows if not psutil.pid_exists(pid)]


def delete_lost_workers(tx: Transaction) -> list[LostWorker]:
    """Delete and return the lost workers; delete the sockets of those that have ended."""
    import psutil  # only here: commands that count live workers start without it

    here = socket.gethostname()
    lost = tx.all(DELETE_LOST_WORKERS, {"silent_since": tx.now - LOST_AFTER_SECONDS * SECOND})
    for wake, _, host, pid, _ in lost:
        # A worker that was only slow registers again, and still uses its socket.
        if wake is not None and host == here and not psutil.pid_exists(pid):
            Path(wake).unlink(missing_ok=True)
    return [
        LostWorker(kind, host, pid, (tx.now - seen_at) // SECOND)
        for _, kind, host, pid, seen_at in lost
    ]
