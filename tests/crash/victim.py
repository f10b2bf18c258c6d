"""A process that takes one message through its whole life, and kills itself at a named point."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from bullpen.core.errors import StaleToken
from bullpen.core.queue.claim import claim
from bullpen.core.queue.enqueue import enqueue
from bullpen.core.settings import Settings
from bullpen.core.store.open import open_store
from bullpen.core.store.transaction import Transaction
from tests.crash.fuse import arrive, die_when_commit_is_sent
from tests.crash.work import Order, Platform, Step, Task, answer, deliver, settle

AGENT = "alpha"
MESSAGE_ID = "mine-1"
LOST = 7
"""The exit status of a victim whose token was void."""


class Point(StrEnum):
    """Where the life of a message may be cut off."""

    BEFORE_ENQUEUE_COMMIT = "before enqueue's commit"
    ENQUEUE_COMMIT_SENT = "enqueue's commit sent, its answer not read"
    ENQUEUED = "after enqueue"
    BEFORE_CLAIM_COMMIT = "before claim's commit"
    CLAIM_COMMIT_SENT = "claim's commit sent, its answer not read"
    CLAIMED = "after claim"
    OUTPUT = "after the run's output"
    BEFORE_FINISH_COMMIT = "before finish's commit"
    FINISH_COMMIT_SENT = "finish's commit sent, its answer not read"
    FINISHED = "after finish"


COMMITS = (Point.ENQUEUE_COMMIT_SENT, Point.CLAIM_COMMIT_SENT, Point.FINISH_COMMIT_SENT)


@dataclass(frozen=True, slots=True)
class Death:
    """Which signal the victim sends itself, and where."""

    point: Point | Step
    part: int = 0
    by: signal.Signals = signal.SIGKILL

    def at(self, point: Point | Step, part: int = 0, tx: Transaction | None = None) -> None:
        """This point is reached; within a transaction, the server has done all that was asked."""
        if (point, part) == (self.point, self.part):
            if tx is not None:
                arrive(tx)
            os.kill(os.getpid(), self.by)

    def commit(self, before: Point, sent: Point, tx: Transaction) -> None:
        """The end of a transaction's block is reached."""
        self.at(before, tx=tx)
        if self.point is sent:
            die_when_commit_is_sent()


def live(settings: Settings, platform: Path, death: Death, order: Order) -> None:
    """Enqueue, claim, answer and deliver one message."""
    store = open_store(settings)
    with store.write() as tx:
        enqueue(tx, Task("life", 1, order).to(AGENT, MESSAGE_ID))
        death.commit(Point.BEFORE_ENQUEUE_COMMIT, Point.ENQUEUE_COMMIT_SENT, tx)
    death.at(Point.ENQUEUED)
    with store.write(durable=False) as tx:
        claimed = claim(tx, "victim", agent=AGENT)
        death.commit(Point.BEFORE_CLAIM_COMMIT, Point.CLAIM_COMMIT_SENT, tx)
    assert claimed is not None
    death.at(Point.CLAIMED)
    result = answer(claimed)
    death.at(Point.OUTPUT)
    try:
        with store.write() as tx:
            settle(tx, claimed, result)
            death.commit(Point.BEFORE_FINISH_COMMIT, Point.FINISH_COMMIT_SENT, tx)
        death.at(Point.FINISHED)
        deliver(store, Platform(platform), "victim", death.at)
    except StaleToken:
        raise SystemExit(LOST) from None
    store.close()
