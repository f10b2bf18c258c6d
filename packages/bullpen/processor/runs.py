"""The runs of this process: leases renewed, progress written, and an end when told."""

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

# What runs are doing, as events for whoever watches: often enough to follow, and not more.
#
# Written by a thread of its own: who reads a program's output must never wait for the store, for
# claude throws away what its pipe does not take at once.

log = logging.getLogger(__name__)

PROGRESS_SECONDS = 0.5
IDLE_SECONDS = 60.0
MAX_PROGRESS_CHARS = 4000


class Progress:
    """The progress of one run."""

    def __init__(self, message: Message, wake: Callable[[], None]) -> None:
        self.message = message
        self._wake = wake
        self._texts: list[str] = []
        self._lock = threading.Lock()

    def __call__(self, text: str) -> None:
        """Something was said or done."""
        with self._lock:
            self._texts.append(text)
        self._wake()

    def take(self) -> str:
        """What was not told yet: of much, the end."""
        with self._lock:
            texts, self._texts = self._texts, []
        return sanitise_text("\n".join(texts))[-MAX_PROGRESS_CHARS:]


class ProgressBoard:
    """The progress of all runs of this process."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._open: list[Progress] = []
        self._told = float("-inf")
        self.loop = Loop("progress", self.step)

    def open(self, message: Message) -> Progress:
        """Follow a run."""
        progress = Progress(message, self.loop.wake)
        with self._lock:
            self._open.append(progress)
        return progress

    def close(self, progress: Progress) -> None:
        """The run is over: tell the rest, before anything else is told of it."""
        with self._lock:
            self._open.remove(progress)
        self._tell([progress])

    def step(self) -> float:
        """Tell what was said since the last time, unless that was just now."""
        left = self._told + PROGRESS_SECONDS - self._clock()
        if left > 0:
            return left
        with self._lock:
            runs = list(self._open)
        if not self._tell(runs):
            return IDLE_SECONDS
        self._told = self._clock()
        return PROGRESS_SECONDS

    def _tell(self, runs: list[Progress]) -> bool:
        said = [(run.message, text) for run in runs if (text := run.take())]
        if not said:
            return False
        try:
            with self._store.write(durable=False) as tx:
                for message, text in said:
                    append_event(tx, AgentProgress(message, text=text))
        except BullpenError as error:
            log.warning("the progress of %s runs is not shown: %s", len(said), error)
        return True


RELEASE_SECONDS = 20.0
"""How long a run that was told to stop has for ending its child and giving back its claim."""

LANE_TOKEN: Statement[tuple[str | None]] = Statement(
    lambda: select(LANES.c.claim_token).where(LANES.c.agent == bindparam("agent"))
)

ExecuteRun = Callable[[Claim, Stop], None]
"""Sees one claim through, from its messages to what is stored; stops when it is told to."""


@dataclass(frozen=True, slots=True)
class Run:
    """One claim at work."""

    claim: Claim
    thread: threading.Thread
    stop: Stop


class Runs:
    """At most so many runs at once, each in a thread of its own."""

    def __init__(
        self, store: Store, answer: ExecuteRun, most: int, done: Callable[[], None]
    ) -> None:
        self._store = store
        self._answer = answer
        self._most = most
        self._done = done
        self._lock = threading.Lock()
        self._running: dict[str, Run] = {}

    @property
    def free(self) -> int:
        """How many more may be started."""
        return self._most - len(self._running)

    def start(self, claim: Claim) -> None:
        """Run this claim."""
        stop = Stop()
        thread = threading.Thread(
            target=self._run, args=(claim, stop), name=f"run {claim.agent}", daemon=True
        )
        with self._lock:
            self._running[claim.token] = Run(claim, thread, stop)
        thread.start()

    def renew(self) -> None:
        """Extend the lease of every run; one that lost it is ended and its output dropped."""
        for run in self._all():
            try:
                with self._store.write(durable=False) as tx:
                    extend(tx, run.claim.token)
            except StaleToken:
                self._stop(run, at_once=True)

    def watch(self) -> None:
        """End the runs whose claim was taken away, as by a person who cancels a message."""
        runs = self._all()
        if not runs:
            return
        with self._store.read() as tx:
            held = tx.one_each(LANE_TOKEN, [{"agent": run.claim.agent} for run in runs])
        for run, row in zip(runs, held, strict=True):
            if row is None or row[0] != run.claim.token:
                self._stop(run, at_once=True)

    def stop(self, grace: float) -> None:
        """Give the runs this long to end, then stop and release them."""
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
            self._answer(claim, stop)
        except Exception:
            log.exception("the run of %s ended badly", claim.agent)
        finally:
            with self._lock:
                del self._running[claim.token]
                stop.close()
            self._done()
