"""What a long-running process is made of: loops, signals and the table of workers."""

from __future__ import annotations

import logging
import os
import select as system_select
import signal
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import bindparam, delete, func, insert, select, update

from bullpen.core.clock import SECOND
from bullpen.core.errors import BullpenError
from bullpen.core.models import WORKERS
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction


class StopSignals:
    """Hears SIGTERM and SIGINT from its making on, so that none is lost while a process starts."""

    def __init__(self) -> None:
        # Python runs a handler when its main thread comes to it, which one that has just begun to
        # read does not. The byte is written by the interrupted thread itself, whichever that is.
        self._told, tell = os.pipe()
        os.set_blocking(tell, False)
        signal.set_wakeup_fd(tell)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)

    def wait(self, seconds: float | None = None) -> bool:
        """Until one of them comes, or this time is over; true if one came."""
        ready, _, _ = system_select.select([self._told], [], [], seconds)
        return bool(ready)


log = logging.getLogger(__name__)

LoopStep = Callable[[], float]
"""Does what there is to do; tells how many seconds it can wait before the next time."""


class Loop:
    """Runs a step in a thread of its own, when woken and when its time has come."""

    def __init__(self, name: str, step: LoopStep, retry_seconds: float = 1.0) -> None:
        self.name = name
        self._step = step
        self._retry = retry_seconds
        self._woken = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wake(self) -> None:
        """There may be something to do."""
        self._woken.set()

    def stop(self, timeout: float = 30.0) -> bool:
        """Take no further step; true if the present one ended within the time."""
        self._stopping.set()
        self._woken.set()
        if self._thread.ident is not None:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            # In this order, so that a stop that comes in between is not forgotten.
            self._woken.clear()
            if self._stopping.is_set():
                return
            try:
                wait = self._step()
            except BullpenError as error:
                log.warning("%s: %s (%s)", self.name, error, error.hint)
                wait = self._retry
            except Exception:
                log.exception("%s failed and goes on", self.name)
                wait = self._retry
            self._woken.wait(wait)


LIVENESS_SECONDS = 20
LOST_AFTER_SECONDS = 3 * LIVENESS_SECONDS
"""After so long without a heartbeat a worker is forgotten. Its claims end with their leases."""

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
    """A process that was not heard of any more."""

    kind: str
    host: str
    pid: int
    silent_seconds: int


def register_worker(tx: Transaction, kind: str, wake: str | None = None) -> str:
    """Enter this process, under a new id each time: a restarted one is somebody else."""
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
    """Say that it is alive; false if it was forgotten meanwhile and must register again."""
    return tx.change(UPDATE_LIVENESS, {"worker": worker, "now": tx.now}) == 1


def unregister_worker(tx: Transaction, worker: str) -> None:
    """Strike this process out."""
    tx.write(DELETE_WORKER, {"worker": worker})


def count_live_workers(tx: Transaction) -> dict[str, int]:
    """How many processes of each kind were heard of lately."""
    rows = tx.all(COUNT_LIVE_WORKERS, {"silent_since": tx.now - LOST_AFTER_SECONDS * SECOND})
    return {kind: count for kind, count in rows}  # noqa: C416 - rows, not pairs


def delete_lost_workers(tx: Transaction) -> list[LostWorker]:
    """Strike out those that were not heard of; gives who. The dead ones' sockets go too."""
    import psutil  # only here: commands that ask who is alive begin without it

    here = socket.gethostname()
    gone = tx.all(DELETE_LOST_WORKERS, {"silent_since": tx.now - LOST_AFTER_SECONDS * SECOND})
    for wake, _, host, pid, _ in gone:
        # One that was only slow registers again, and still listens there.
        if wake is not None and host == here and not psutil.pid_exists(pid):
            Path(wake).unlink(missing_ok=True)
    return [
        LostWorker(kind, host, pid, (tx.now - heard_at) // SECOND)
        for _, kind, host, pid, heard_at in gone
    ]
