"""The scheduler: a process that does what is due, whoever else is there to do it."""

from __future__ import annotations

import logging
import time
from functools import partial

from bullpen.core.background import (
    LIVENESS_SECONDS,
    Loop,
    StopSignals,
    register_worker,
    report_liveness,
    unregister_worker,
)
from bullpen.core.events.log import EventType, append_event
from bullpen.core.heartbeats.run import send_due_heartbeats as heartbeats_tick
from bullpen.core.maintenance.jobs import (
    JOBS,
    RENEW_LEASE_SECONDS,
    MaintenanceJob,
    register_jobs,
    release_job_leases,
    renew_job_leases,
    run_job_if_due,
)
from bullpen.core.schedules.fire import fire_due_schedules as schedules_tick
from bullpen.core.store.base import Store
from bullpen.core.wake.listener import WakeupDispatcher

log = logging.getLogger(__name__)

KIND = "scheduler"
RETRY_SECONDS = 2.0
"""After an error that came before a system agent was even asked, as of a server that is away."""
STOP_SECONDS = 5.0
"""What takes longer is left in the middle: all of it is done in small transactions."""


class Scheduler:
    """Loops for schedules, for heartbeats, and for each system agent: none waits for another.

    As many of these processes may run as like: each due time is one's, and so is each turn.
    """

    def __init__(self, store: Store, rota: tuple[MaintenanceJob, ...] = JOBS) -> None:
        self._store = store
        self._jobs = rota
        self._listener = store.listen()
        with store.write() as tx:
            self.worker = register_worker(tx, KIND, self._listener.address)
            append_event(tx, EventType.SCHEDULER_START, worker=self.worker)
        schedules = Loop("schedules", partial(schedules_tick, store))
        heartbeats = Loop("heartbeats", partial(heartbeats_tick, store))
        self._loops = (
            schedules,
            heartbeats,
            Loop("beat", self._beat),
            Loop("turns", self._renew),
            *(Loop(each.name, partial(self._turn, each), RETRY_SECONDS) for each in rota),
        )
        self._dispatcher = WakeupDispatcher(self._listener)
        self._dispatcher.on("schedules", schedules.wake)
        self._dispatcher.on("heartbeats", heartbeats.wake)

    def start(self) -> None:
        """Begin."""
        register_jobs(self._store, self._jobs)
        self._dispatcher.start()
        for loop in self._loops:
            loop.start()
        log.info("%s is ready", self.worker)

    def stop(self) -> None:
        """Begin nothing more, end what is quick, leave the rest to others, and sign off."""
        for loop in self._loops:
            loop.stop(0)
        deadline = time.monotonic() + STOP_SECONDS
        for loop in self._loops:
            if not loop.stop(max(0.0, deadline - time.monotonic())):
                log.warning("%s is left in the middle of its work", loop.name)
        self._dispatcher.stop()
        with self._store.write() as tx:
            release_job_leases(tx, self.worker)
            unregister_worker(tx, self.worker)
            append_event(tx, EventType.SCHEDULER_STOP, worker=self.worker)
        log.info("%s has stopped", self.worker)

    def _turn(self, agent: MaintenanceJob) -> float:
        return run_job_if_due(self._store, self.worker, agent)

    def _renew(self) -> float:
        renew_job_leases(self._store, self.worker)
        return RENEW_LEASE_SECONDS

    def _beat(self) -> float:
        with self._store.write(durable=False) as tx:
            if not report_liveness(tx, self.worker):
                self.worker = register_worker(tx, KIND, self._listener.address)
        return float(LIVENESS_SECONDS)


def run(store: Store) -> None:
    """Be a scheduler until SIGTERM or SIGINT."""
    ending = StopSignals()
    scheduler = Scheduler(store)
    scheduler.start()
    ending.wait()
    scheduler.stop()
