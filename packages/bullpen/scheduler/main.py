"""The scheduler: runs schedules, heartbeats and the jobs that maintain the store."""

from __future__ import annotations

from functools import partial

from bullpen.core.answers.leases import watch_leases
from bullpen.core.background import Loop, WorkerProcess, run_until_stopped
from bullpen.core.events.system import SchedulerStart, SchedulerStop
from bullpen.core.heartbeats.run import send_due_heartbeats
from bullpen.core.maintenance.jobs import (
    JOBS,
    RENEW_LEASE_SECONDS,
    MaintenanceJob,
    register_jobs,
    release_job_leases,
    renew_job_leases,
    run_job_if_due,
)
from bullpen.core.schedules.fire import fire_due_schedules
from bullpen.core.store.base import Store

KIND = "scheduler"
RETRY_SECONDS = 2.0
"""The wait after an error outside of a job, for example if the database cannot be reached."""
WATCH_SECONDS = 1.0
"""How often each scheduler checks the leases of claims; any of them ends the expired ones."""
STOP_SECONDS = 5.0
"""A job that takes longer is interrupted, which is safe because its transactions are small."""


class Scheduler:
    """Loops for schedules, heartbeats and each job, none of which waits for another.

    Any number of schedulers may run. Each due time and each turn of a job is taken by one of them.
    """

    def __init__(self, store: Store, jobs: tuple[MaintenanceJob, ...] = JOBS) -> None:
        self._store = store
        self._jobs = jobs
        self._process = WorkerProcess(store, KIND, started=SchedulerStart, stopped=SchedulerStop)
        self._process.add(Loop("schedules", partial(fire_due_schedules, store)), "schedules")
        self._process.add(Loop("heartbeats", partial(send_due_heartbeats, store)), "heartbeats")
        self._process.add(Loop("job leases", self._renew_leases))
        self._process.add(Loop("lease watch", self._watch_leases))
        for job in jobs:
            self._process.add(Loop(job.name, partial(self._run_job, job), RETRY_SECONDS))

    @property
    def worker(self) -> str:
        """The worker id of this process."""
        return self._process.worker

    def start(self) -> None:
        """Register the jobs and start the loops."""
        register_jobs(self._store, self._jobs)
        self._process.start()

    def stop(self) -> None:
        """Stop the loops within a short time; other schedulers take over the rest."""
        self._process.stop(STOP_SECONDS, release_job_leases)

    def _run_job(self, job: MaintenanceJob) -> float:
        return run_job_if_due(self._store, self.worker, job)

    def _watch_leases(self) -> float:
        watch_leases(self._store)
        return WATCH_SECONDS

    def _renew_leases(self) -> float:
        renew_job_leases(self._store, self.worker)
        return RENEW_LEASE_SECONDS


def run(store: Store) -> None:
    """Run a scheduler until SIGTERM or SIGINT."""
    run_until_stopped(lambda: Scheduler(store))
