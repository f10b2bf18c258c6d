"""The register of processes that are alive: who, where, and how to wake them."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import bindparam, delete, func, insert, select, update

from bullpen.core.clock import SECOND
from bullpen.core.models import WORKERS
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

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
