"""Group commit: concurrent writes of several threads in one transaction.

SQLite has one writer at a time, and each commit waits for the disk: eight threads would wait for
eight commits and compete for the lock. Here the first thread runs the jobs of all waiting threads
and commits once. A job that fails is rolled back to its savepoint. PostgreSQL groups the commits of
several connections itself, so there each thread has its own transaction.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from sqlalchemy import text

from bullpen.core.errors import StoreBusy, StoreError
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

Result = TypeVar("Result")
Work = Callable[[Transaction], Result]

MAX_JOBS_PER_COMMIT = 32
"""The maximum number of jobs in one transaction, so that the first one does not wait too long."""

SAVEPOINT: Statement[None] = Statement(lambda: text("SAVEPOINT work"))
RELEASE_SAVEPOINT: Statement[None] = Statement(lambda: text("RELEASE work"))
ROLLBACK_TO_SAVEPOINT: Statement[None] = Statement(lambda: text("ROLLBACK TO work"))


@contextmanager
def savepoint(tx: Transaction) -> Iterator[None]:
    """A part of a transaction that is rolled back alone if it raises an error."""
    tx.write(SAVEPOINT, {})
    try:
        yield
    except (sqlite3.Error, StoreError):
        raise
    except Exception:
        tx.write(ROLLBACK_TO_SAVEPOINT, {})
        tx.write(RELEASE_SAVEPOINT, {})
        raise
    tx.write(RELEASE_SAVEPOINT, {})


class GroupCommit:
    """Runs the writes of a process's threads in common transactions."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._waiting: list[_Job[object]] = []
        self._has_leader = False

    def write(self, work: Work[Result]) -> Result:
        """Run this in a transaction that is committed.

        It may run in another thread, so it must not depend on the calling thread.
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
        """Run the waiting jobs, then make the next thread the leader of the rest."""
        with self._lock:
            jobs, self._waiting = (
                self._waiting[:MAX_JOBS_PER_COMMIT],
                self._waiting[MAX_JOBS_PER_COMMIT:],
            )
        began = False
        try:
            with self._store.write(since=jobs[0].since) as tx:
                began = True
                for job in jobs:
                    job.run(tx, alone=len(jobs) == 1)
        except BaseException as error:
            if isinstance(error, StoreBusy) and not began:
                jobs = self._put_back_early(jobs)
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

    def _put_back_early(self, jobs: list[_Job[object]]) -> list[_Job[object]]:
        """Requeue the jobs that have not waited for `busy_seconds`; return the others."""
        since = time.monotonic() - self._store.settings.busy_seconds
        late = [job for job in jobs[1:] if job.since <= since]
        with self._lock:
            self._waiting[:0] = [job for job in jobs[1:] if job.since > since]
        return [jobs[0], *late]


class _Job(Generic[Result]):
    """One thread's work, and its result."""

    def __init__(self, work: Work[Result]) -> None:
        self._work = work
        self.since = time.monotonic()
        self._results: list[Result] = []
        self._error: BaseException | None = None
        self.ready = threading.Event()
        """Set when the job is done, or when its thread becomes the leader."""
        self.done = False

    def run(self, tx: Transaction, *, alone: bool) -> None:
        """Run the work; roll back its own failure; a failure of the database ends all jobs."""
        if alone:
            self._results.append(self._work(tx))
            return
        try:
            with savepoint(tx):
                self._results.append(self._work(tx))
        except (sqlite3.Error, StoreError):
            raise
        except Exception as error:
            self._error = error

    def fail(self, error: BaseException) -> None:
        """Note that the transaction was not committed."""
        self._error = self._error or error

    def result(self) -> Result:
        """The result of the work; raises its error."""
        if self._error is not None:
            raise self._error
        return self._results[0]
