"""Processes that use one store as hard as they can: enqueue, claim, run, finish, deliver, reap."""

from __future__ import annotations

import fcntl
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from bullpen.core.answers.leases import expire_leases
from bullpen.core.clock import SECOND
from bullpen.core.errors import DuplicateMessage, StaleToken, StoreError
from bullpen.core.maintenance.recovery import end_stale_deliveries
from bullpen.core.message import Claim
from bullpen.core.outbox.leases import lease_responses
from bullpen.core.queue.claim import claim, extend
from bullpen.core.queue.enqueue import enqueue
from bullpen.core.queue.fail import release
from bullpen.core.queue.timers import run_timers
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from tests.crash.children import append, orphaned
from tests.crash.work import (
    BATCHED,
    CHANNEL,
    SINGLE,
    Order,
    Platform,
    Task,
    answer,
    send,
    settle,
)

AWAY_SECONDS = 0.05
LONG_RUN = 0.01
"""The share of runs that outlast their lease and live by renewing it."""

ORDERS = (*[Order.ANSWER] * 6, Order.TWICE, Order.HAND, Order.POST, Order.STUMBLE, Order.REFUSE)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Record:
    """Where the processes write down what they see, each line at once."""

    directory: Path

    @property
    def intended(self) -> Path:
        """Ids, before they are sent."""
        return self.directory / "intended"

    @property
    def accepted(self) -> Path:
        """Ids, after their commit."""
        return self.directory / "accepted"

    @property
    def overlaps(self) -> Path:
        """Runs that began while another one of the same agent had a lease."""
        return self.directory / "overlaps"

    @property
    def platform(self) -> Platform:
        """What was sent to people."""
        return Platform(self.directory / "platform")


def toil(settings: Settings, record: Record, patient: bool) -> None:
    """Work until SIGTERM or SIGKILL; `patient` waits for a database that is away."""
    Worker(open_store(settings), record, patient).work()


class Worker:
    """One process of the load."""

    def __init__(self, store: Store, record: Record, patient: bool) -> None:
        self._store = store
        self._record = record
        self._patient = patient
        self._name = f"w{os.getpid()}-{os.urandom(3).hex()}"
        self._count = 0
        self._stopping = False
        self._random = random.Random(self._name)
        signal.signal(signal.SIGTERM, self._stop)

    def work(self) -> None:
        """Do one thing after the other."""
        duties = (self._enqueue, self._run, self._run, self._deliver, self._deliver, self._tidy)
        while not self._stopping and not orphaned():
            with suppress(StaleToken):
                self._random.choice(duties)()
        self._store.close()

    def _stop(self, *_: object) -> None:
        self._stopping = True

    def _repeat(self, once: Callable[[], T]) -> T:
        """Do it, again and again while the database is away: the same id, the same token."""
        while True:
            try:
                return once()
            except StoreError:
                if not self._patient or orphaned():
                    raise
                time.sleep(AWAY_SECONDS)

    def _enqueue(self) -> None:
        self._count += 1
        agent = self._random.choice((*SINGLE, *BATCHED))
        order = Order.ANSWER if agent in BATCHED else self._random.choice(ORDERS)
        new = Task(self._name, self._count, order).to(agent, f"{self._name}-{self._count}")

        def once() -> None:
            with suppress(DuplicateMessage), self._store.write() as tx:
                enqueue(tx, new)

        append(self._record.intended, str(new.message_id))
        self._repeat(once)
        append(self._record.accepted, str(new.message_id))

    def _run(self) -> None:
        def once() -> Claim | None:
            with self._store.write(durable=False) as tx:
                return claim(tx, self._name)

        claimed = self._repeat(once)
        if claimed is None:
            return
        with self._alone(claimed) as renewed:
            if self._random.random() < LONG_RUN:
                self._run_long(claimed, renewed)
            else:
                time.sleep(self._random.uniform(0, 0.02))
        result = answer(claimed)

        def end() -> None:
            with self._store.write() as tx:
                if self._random.random() < 0.03:
                    release(tx, claimed.token)
                else:
                    settle(tx, claimed, result)

        self._repeat(end)

    def _run_long(self, claimed: Claim, renewed: Callable[[int], None]) -> None:
        lease = self._store.settings.lease_seconds
        for _ in range(6):
            time.sleep(lease / 4)
            renewed(self._repeat(lambda: self._extend(claimed.token)))

    def _extend(self, token: str) -> int:
        with self._store.write(durable=False) as tx:
            return extend(tx, token)

    @contextmanager
    def _alone(self, claimed: Claim) -> Iterator[Callable[[int], None]]:
        """Hold the agent's lock for as long as the run lives; SIGKILL lets it go.

        A run that finds it held notes an overlap, unless the holder's lease had ended by then: a
        process that the machine did not let run for so long finds its token void. Leases are all
        of one length, so an older holder's line in the file is never later than the present one's.
        """
        path = self._record.directory / f"lock-{claimed.agent}"
        claimed_at = claimed.lease_expires_at - self._store.settings.lease_seconds * SECOND
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                held_until = int(os.pread(file, 20, 0) or b"0")
                if held_until > claimed_at:
                    text = f"{claimed.token} began at {claimed_at}, another run until {held_until}"
                    append(self._record.overlaps, text)

            def write(until: int) -> None:
                os.pwrite(file, b"%-20d" % until, 0)

            write(claimed.lease_expires_at)
            yield write
        finally:
            os.close(file)

    def _deliver(self) -> None:
        store = self._store
        if self._patient:
            # A client that is told nothing cannot go on in the middle: it leases anew.
            with suppress(StoreError):
                self._deliver_one(store)
        else:
            self._deliver_one(store)

    def _deliver_one(self, store: Store) -> None:
        with store.write() as tx:
            leased = lease_responses(tx, CHANNEL, self._name, limit=1)
        for each in leased:
            send(store, self._record.platform, each)

    def _tidy(self) -> None:
        def once() -> None:
            with self._store.write(durable=False) as tx:
                expire_leases(tx)
                run_timers(tx)
            end_stale_deliveries(self._store)

        self._repeat(once)
