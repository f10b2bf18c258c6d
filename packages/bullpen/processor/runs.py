"""The runs of a processor: their threads, their leases, and how they are stopped."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import bindparam, select

from bullpen.core.errors import StaleToken
from bullpen.core.message import Claim
from bullpen.core.models import LANES
from bullpen.core.queue.claim import extend
from bullpen.core.queue.lanes import LOCK_LANE_IF_FREE
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement
from bullpen.processor.children.child import Stop

log = logging.getLogger(__name__)

RELEASE_SECONDS = 20.0
"""How long a stopped run may take to end its child and release its claim."""

LANE_TOKEN: Statement[tuple[str | None]] = Statement(
    lambda: select(LANES.c.claim_token).where(LANES.c.agent == bindparam("agent"))
)

ExecuteRun = Callable[[Claim, Stop], None]
"""Executes one claim, until its result is stored or it is stopped."""


@dataclass(frozen=True, slots=True)
class Run:
    """One claim, and the thread that executes it."""

    claim: Claim
    thread: threading.Thread
    stop: Stop


class Runs:
    """A limited number of runs, each in its own thread."""

    def __init__(
        self, store: Store, execute: ExecuteRun, max_runs: int, on_end: Callable[[], None]
    ) -> None:
        self._store = store
        self._execute = execute
        self._max_runs = max_runs
        self._on_end = on_end
        self._lock = threading.Lock()
        self._running: dict[str, Run] = {}

    @property
    def free(self) -> int:
        """How many more runs may be started."""
        return self._max_runs - len(self._running)

    def start(self, claim: Claim) -> None:
        """Start a run for this claim."""
        stop = Stop()
        thread = threading.Thread(
            target=self._run, args=(claim, stop), name=f"run {claim.agent}", daemon=True
        )
        with self._lock:
            self._running[claim.token] = Run(claim, thread, stop)
        thread.start()

    def renew(self) -> bool:
        """Extend the lease of every run; end a run that lost it.

        Returns false if another process has locked a lane. That lane is skipped, so that it
        does not delay the others.
        """
        renewed = True
        for run in self._all():
            try:
                with self._store.write(durable=False) as tx:
                    if tx.one(LOCK_LANE_IF_FREE, {"agent": run.claim.agent}) is None:
                        renewed = False
                    else:
                        extend(tx, run.claim.token)
            except StaleToken:
                self._stop(run, at_once=True)
        return renewed

    def watch(self) -> None:
        """End the runs whose claim is no longer valid, for example of a cancelled message."""
        runs = self._all()
        if not runs:
            return
        with self._store.read() as tx:
            rows = tx.one_each(LANE_TOKEN, [{"agent": run.claim.agent} for run in runs])
        for run, row in zip(runs, rows, strict=True):
            if row is None or row[0] != run.claim.token:
                self._stop(run, at_once=True)

    def stop(self, grace: float) -> None:
        """Wait this long for the runs, then stop and release those that remain."""
        runs = self._all()
        deadline = time.monotonic() + grace
        for run in runs:
            run.thread.join(max(0.0, deadline - time.monotonic()))
        for run in self._all():
            self._stop(run)
        for run in runs:
            run.thread.join(RELEASE_SECONDS)

    def _all(self) -> list[Run]:
        with self._lock:
            return list(self._running.values())

    def _stop(self, run: Run, *, at_once: bool = False) -> None:
        with self._lock:
            if run.claim.token in self._running:
                run.stop.set(at_once=at_once)

    def _run(self, claim: Claim, stop: Stop) -> None:
        try:
            self._execute(claim, stop)
        except Exception:
            log.exception("the run of @%s ended with an error", claim.agent)
        finally:
            with self._lock:
                del self._running[claim.token]
                stop.close()
            self._on_end()
