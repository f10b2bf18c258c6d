"""The processor: a process that claims messages and runs the agents that answer them."""

from __future__ import annotations

from bullpen.core.background import Loop, WorkerProcess, run_until_stopped
from bullpen.core.clock import SECOND
from bullpen.core.events.system import ProcessorStart, ProcessorStop
from bullpen.core.events.tail import EventTail
from bullpen.core.queue.claim import claim, has_claimable
from bullpen.core.queue.timers import next_timer_at
from bullpen.core.store.base import Store
from bullpen.processor.children.child import Launcher
from bullpen.processor.execute import FindProvider, RunExecutor
from bullpen.processor.plugins import Plugins
from bullpen.processor.providers.registry import Providers
from bullpen.processor.runs import Runs

KIND = "processor"
IDLE_SECONDS = 60.0
"""The longest wait of a loop that is woken when there is work."""
RACE_SECONDS = 0.02
"""How long to wait when another processor claimed first, or holds the lock of the lane."""
LOCKED_SECONDS = 1.0
"""How soon a lease is renewed again if its lane was locked."""
PLUGIN_SECONDS = 1.0
"""How often plugins get events that no commit announced."""


class Processor:
    """Loops that claim messages, renew leases, end cancelled runs and call plugins."""

    def __init__(self, store: Store, find: FindProvider, plugins: Plugins | None = None) -> None:
        self._store = store
        self._plugins = plugins or Plugins()
        self._tail: EventTail | None = None
        self._process = WorkerProcess(store, KIND, started=ProcessorStart, stopped=ProcessorStop)
        executor = RunExecutor(store, find, self._plugins)
        self._claiming = self._process.add(Loop("claim", self._claim), "messages")
        self._runs = Runs(store, executor, store.settings.max_runs, self._claiming.wake)
        self._process.add(Loop("renew", self._renew))
        self._process.add(Loop("watch", self._watch), "runs")
        self._process.add(Loop("plugins", self._call_plugins), "events")
        self._process.add(executor.progress.loop)

    @property
    def worker(self) -> str:
        """The worker id of this process."""
        return self._process.worker

    def start(self) -> None:
        """Start the loops."""
        if self._plugins.listens:
            self._tail = EventTail.from_now(self._store)
        self._process.start()

    def stop(self) -> None:
        """Stop claiming, wait for the runs, release those that remain, and unregister."""
        self._claiming.stop()
        self._runs.stop(self._store.settings.grace_seconds)
        self._process.stop()

    def _claim(self) -> float:
        while self._runs.free > 0:
            with self._store.read() as tx:
                if not has_claimable(tx):
                    return _seconds_until(next_timer_at(tx), tx.now)
            with self._store.write(durable=False) as tx:
                claimed = claim(tx, self.worker)
            if claimed is None:
                return RACE_SECONDS
            self._runs.start(claimed)
        return IDLE_SECONDS

    def _renew(self) -> float:
        lease = self._store.settings.lease_seconds
        return lease / 3 if self._runs.renew() else min(LOCKED_SECONDS, lease / 3)

    def _watch(self) -> float:
        self._runs.watch()
        return IDLE_SECONDS

    def _call_plugins(self) -> float:
        if self._tail is None:
            return IDLE_SECONDS
        for event in self._tail.read():
            self._plugins.dispatch(event)
        return PLUGIN_SECONDS


def run(store: Store) -> None:
    """Run a processor until SIGTERM or SIGINT."""
    launcher = Launcher()
    providers = Providers(store.settings, launcher)
    run_until_stopped(lambda: Processor(store, providers.get, Plugins.load(store.settings.home)))
    launcher.stop()


def _seconds_until(due: int | None, now: int) -> float:
    wait = IDLE_SECONDS if due is None else (due - now) / SECOND
    return min(max(wait, 0.0), IDLE_SECONDS)
