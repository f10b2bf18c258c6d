"""The runs of a processor: their threads, leases, progress and end."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import bindparam, select

from bullpen.core.background import Loop
from bullpen.core.errors import BullpenError, StaleToken
from bullpen.core.events.append import append_event
from bullpen.core.events.conversation import AgentProgress
from bullpen.core.message import Claim, Message
from bullpen.core.models import LANES
from bullpen.core.queue.claim import extend
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement
from bullpen.core.text import sanitise_text
from bullpen.processor.children.child import Stop

log = logging.getLogger(__name__)

RELEASE_SECONDS = 20.0
"""How long a run that is stopped has to end its child and release its claim."""

PROGRESS_SECONDS = 0.5

IDLE_SECONDS = 60.0

MAX_PROGRESS_CHARS = 4000

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
    """Runs of a limited number at once, each in its own thread."""

    def __init__(
        self, store: Store, execute: ExecuteRun, max_runs: int, done: Callable[[], None]
    ) -> None:
        self._store = store
        self._execute = execute
        self._max_runs = max_runs
        self._done = done
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

    def renew(self) -> None:
        """Extend the lease of every run; end a run that lost it."""
        for run in self._all():
            try:
                with self._store.write(durable=False) as tx:
                    extend(tx, run.claim.token)
            except StaleToken:
                self._stop(run, at_once=True)

    def watch(self) -> None:
        """End the runs whose claim was taken away, as when a message is cancelled."""
        runs = self._all()
        if not runs:
            return
        with self._store.read() as tx:
            rows = tx.one_each(LANE_TOKEN, [{"agent": run.claim.agent} for run in runs])
        for run, row in zip(runs, rows, strict=True):
            if row is None or row[0] != run.claim.token:
                self._stop(run, at_once=True)

    def stop(self, grace: float) -> None:
        """Wait this long for the runs, then stop and release those that are left."""
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
            log.exception("the run of %s ended badly", claim.agent)
        finally:
            with self._lock:
                del self._running[claim.token]
                stop.close()
            self._done()


class Progress:
    """The progress of one run, collected until it is written."""

    def __init__(self, message: Message, wake: Callable[[], None]) -> None:
        self.message = message
        self._wake = wake
        self._texts: list[str] = []
        self._lock = threading.Lock()

    def __call__(self, text: str) -> None:
        """Add what the run says or does."""
        with self._lock:
            self._texts.append(text)
        self._wake()

    def take(self) -> str:
        """Take what is not written yet; of a long text, the end."""
        with self._lock:
            texts, self._texts = self._texts, []
        return sanitise_text("\n".join(texts))[-MAX_PROGRESS_CHARS:]


class ProgressBoard:
    """Writes the progress of all runs as events, often enough to follow and not more.

    A thread of its own writes: a thread that reads a program's output must never wait for the
    store, because claude drops what its pipe does not take at once.
    """

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._open: list[Progress] = []
        self._written_at = float("-inf")
        self.loop = Loop("progress", self.step)

    def open(self, message: Message) -> Progress:
        """Collect the progress of a run."""
        progress = Progress(message, self.loop.wake)
        with self._lock:
            self._open.append(progress)
        return progress

    def close(self, progress: Progress) -> None:
        """Write the rest, before any other event of the run that has ended."""
        with self._lock:
            self._open.remove(progress)
        self._write([progress])

    def step(self) -> float:
        """Write what is new, unless the last time was just now."""
        left = self._written_at + PROGRESS_SECONDS - self._clock()
        if left > 0:
            return left
        with self._lock:
            runs = list(self._open)
        if not self._write(runs):
            return IDLE_SECONDS
        self._written_at = self._clock()
        return PROGRESS_SECONDS

    def _write(self, runs: list[Progress]) -> bool:
        texts_of_runs = [(run.message, text) for run in runs if (text := run.take())]
        if not texts_of_runs:
            return False
        try:
            with self._store.write(durable=False) as tx:
                for message, text in texts_of_runs:
                    append_event(tx, AgentProgress(message, text=text))
        except BullpenError as error:
            log.warning("the progress of %s runs is not shown: %s", len(texts_of_runs), error)
        return True
