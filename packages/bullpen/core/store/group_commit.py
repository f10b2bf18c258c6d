"""Writes of several threads that come at the same time, in one transaction.

SQLite lets one write at a time, and each waits for the disk: eight that come together would wait
for eight commits, and take the lock from each other in between. Here the first of them does the
work of all who wait, and they are through with one commit. What fails is undone by itself.
PostgreSQL does the same with the commits of several connections, so there each has its own.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from sqlalchemy import text

from bullpen.core.errors import StoreError
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

Result = TypeVar("Result")
Work = Callable[[Transaction], Result]

MAX_JOBS_PER_COMMIT = 32
"""So many are done in one transaction: the first of them must not wait for all the world."""

SAVEPOINT: Statement[None] = Statement(lambda: text("SAVEPOINT work"))
RELEASE_SAVEPOINT: Statement[None] = Statement(lambda: text("RELEASE work"))
ROLLBACK_TO_SAVEPOINT: Statement[None] = Statement(lambda: text("ROLLBACK TO work"))


class GroupCommit:
    """What a process's threads write one by one elsewhere, they write together here."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._waiting: list[_Job[object]] = []
        self._has_leader = False

    def write(self, work: Work[Result]) -> Result:
        """Do this in a transaction that is committed; another thread may be the one that does it.

        So the work must be about its own values only, and nothing of the thread that asks.
        """
        if self._store.dialect != "sqlite":
            with self._store.write() as tx:
                return work(tx)
        job = _Job(work)
        with self._lock:
            self._waiting.append(job)  # type: ignore[arg-type] # only its own thread reads it
            leads = not self._has_leader
            self._has_leader = True
        if not leads:
            job.ready.wait()
        if not job.done:
            self._lead()
        return job.result()

    def _lead(self) -> None:
        """Do what waits, then leave the rest to the next: nobody works for the others for ever."""
        with self._lock:
            jobs, self._waiting = (
                self._waiting[:MAX_JOBS_PER_COMMIT],
                self._waiting[MAX_JOBS_PER_COMMIT:],
            )
        try:
            with self._store.write() as tx:
                for job in jobs:
                    job.run(tx, alone=len(jobs) == 1)
        except BaseException as error:
            for job in jobs:
                job.fail(error)
        finally:
            with self._lock:
                following = self._waiting[0] if self._waiting else None
                self._has_leader = following is not None
            for job in jobs:
                job.done = True
                job.ready.set()
            if following is not None:
                following.ready.set()


class _Job(Generic[Result]):
    """One thread's work, and what came of it."""

    def __init__(self, work: Work[Result]) -> None:
        self._work = work
        self._results: list[Result] = []
        self._error: BaseException | None = None
        self.ready = threading.Event()
        """It is done, or its thread is to lead."""
        self.done = False

    def run(self, tx: Transaction, *, alone: bool) -> None:
        """Do it; what fails by itself is undone, and what the database fails in, fails for all."""
        if alone:
            self._results.append(self._work(tx))
            return
        tx.write(SAVEPOINT, {})
        try:
            found = self._work(tx)
        except (sqlite3.Error, StoreError):
            raise
        except Exception as error:
            tx.write(ROLLBACK_TO_SAVEPOINT, {})
            tx.write(RELEASE_SAVEPOINT, {})
            self._error = error
        else:
            tx.write(RELEASE_SAVEPOINT, {})
            self._results.append(found)

    def fail(self, error: BaseException) -> None:
        """It was not committed."""
        self._error = self._error or error

    def result(self) -> Result:
        """What came of it, or why nothing did."""
        if self._error is not None:
            raise self._error
        return self._results[0]
