"""A process that does what is due, one loop after the other, when the test says so."""

from __future__ import annotations

from dataclasses import replace

from bullpen.core.maintenance.rota import ROTA
from bullpen.core.maintenance.system_agent import SystemAgent
from bullpen.core.maintenance.turn import enter, run_turn
from bullpen.core.store.base import Store


def run_due(store: Store, worker: str, rota: tuple[SystemAgent, ...] = ROTA) -> list[str]:
    """Ask for a turn of each; gives the names of those that it was given."""
    ran: list[str] = []
    for agent in rota:

        def run(store: Store, agent: SystemAgent = agent) -> str:
            ran.append(agent.name)
            return agent.run(store)

        run_turn(store, worker, replace(agent, run=run))
    return ran


def enter_rota(store: Store, rota: tuple[SystemAgent, ...] = ROTA) -> None:
    """Make sure that every loop has its row."""
    enter(store, rota)
