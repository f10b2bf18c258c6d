"""The processor: a process that claims messages and runs what answers them."""

from __future__ import annotations

import logging

from bullpen.core.background import (
    LIVENESS_SECONDS,
    Loop,
    StopSignals,
    register_worker,
    report_liveness,
    unregister_worker,
)
from bullpen.core.clock import SECOND
from bullpen.core.events.log import EventType, append_event
from bullpen.core.events.tail import EventTail
from bullpen.core.queue.claim import claim, has_claimable
from bullpen.core.queue.timers import next_timer_at
from bullpen.core.store.base import Store
from bullpen.core.wake.listener import WakeupDispatcher
from bullpen.processor.children.child import Launcher
from bullpen.processor.execute import Find, RunExecutor
from bullpen.processor.plugins import Plugins
from bullpen.processor.providers.registry import Providers
from bullpen.processor.runs import Runs

log = logging.getLogger(__name__)

KIND = "processor"
IDLE_SECONDS = 60.0
RACE_SECONDS = 0.02
"""Another processor was quicker, or the lane is locked for a moment: look again soon."""


class Processor:
    """Loops that claim, renew, watch for what is cancelled, and beat; and its runs."""

    def __init__(self, store: Store, find: Find, plugins: Plugins | None = None) -> None:
        self._store = store
        self._plugins = plugins or Plugins()
        settings = store.settings
        self._listener = store.listen()
        with store.write() as tx:
            self.worker = register_worker(tx, KIND, self._listener.address)
            append_event(tx, EventType.PROCESSOR_START, worker=self.worker)
        self._claiming = Loop("claim", self._claim)
        answering = RunExecutor(store, find, self._plugins)
        self._runs = Runs(store, answering, settings.max_runs, self._claiming.wake)
        watching = Loop("watch", self._watch)
        self._listening = Loop("plugins", self._tell_plugins)
        self._tail: EventTail | None = None
        self._loops = (
            self._claiming,
            Loop("renew", self._renew),
            watching,
            self._listening,
            answering.progress.loop,
            Loop("heartbeat", self._beat),
        )
        self._dispatcher = WakeupDispatcher(self._listener)
        self._dispatcher.on("messages", self._claiming.wake)
        self._dispatcher.on("runs", watching.wake)
        self._dispatcher.on("events", self._listening.wake)

    def start(self) -> None:
        """Begin to work."""
        if self._plugins.listens:
            self._tail = EventTail.from_now(self._store)
        self._dispatcher.start()
        for loop in self._loops:
            loop.start()
        log.info("%s is ready", self.worker)

    def stop(self) -> None:
        """Claim no more, give the runs their grace, release the rest, and sign off."""
        self._claiming.stop()
        self._runs.stop(self._store.settings.grace_seconds)
        for loop in self._loops[1:]:
            loop.stop()
        self._dispatcher.stop()
        with self._store.write() as tx:
            unregister_worker(tx, self.worker)
            append_event(tx, EventType.PROCESSOR_STOP, worker=self.worker)
        log.info("%s has stopped", self.worker)

    def _claim(self) -> float:
        while self._runs.free > 0:
            with self._store.read() as tx:
                if not has_claimable(tx):
                    return _until(next_timer_at(tx), tx.now)
            with self._store.write(durable=False) as tx:
                claimed = claim(tx, self.worker)
            if claimed is None:
                return RACE_SECONDS
            self._runs.start(claimed)
        return IDLE_SECONDS

    def _renew(self) -> float:
        self._runs.renew()
        return self._store.settings.lease_seconds / 3

    def _watch(self) -> float:
        self._runs.watch()
        return IDLE_SECONDS

    def _tell_plugins(self) -> float:
        if self._tail is None:
            return IDLE_SECONDS
        for event in self._tail.read():
            self._plugins.hear(event)
        return 1.0

    def _beat(self) -> float:
        with self._store.write(durable=False) as tx:
            if not report_liveness(tx, self.worker):
                self.worker = register_worker(tx, KIND, self._listener.address)
        return float(LIVENESS_SECONDS)


def _until(due: int | None, now: int) -> float:
    wait = IDLE_SECONDS if due is None else (due - now) / SECOND
    return min(max(wait, 0.0), IDLE_SECONDS)


def run(store: Store) -> None:
    """Be a processor until SIGTERM or SIGINT."""
    ending = StopSignals()
    launcher = Launcher()
    providers = Providers(store.settings, launcher)
    processor = Processor(store, providers.get, Plugins.load(store.settings.home))
    processor.start()
    ending.wait()
    processor.stop()
    launcher.stop()
