"""A process that does what is due, one loop after the other, when the test says so."""

from __future__ import annotations

from dataclasses import replace

from bullpen.core.maintenance.jobs import JOBS, MaintenanceJob, register_jobs, run_job_if_due
from bullpen.core.store.base import Store


def run_due(store: Store, worker: str, rota: tuple[MaintenanceJob, ...] = JOBS) -> list[str]:
    """Ask for a turn of each; gives the names of those that it was given."""
    ran: list[str] = []
    for agent in rota:

        def run(store: Store, agent: MaintenanceJob = agent) -> str:
            ran.append(agent.name)
            return agent.run(store)

        run_job_if_due(store, worker, replace(agent, run=run))
    return ran


def enter_rota(store: Store, rota: tuple[MaintenanceJob, ...] = JOBS) -> None:
    """Make sure that every loop has its row."""
    register_jobs(store, rota)
