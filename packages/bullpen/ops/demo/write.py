"""Write a history into an empty store: in bulk, and all of it or nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass

from bullpen.core.company import add_agent
from bullpen.core.errors import InTheWay
from bullpen.core.models import whole_schema
from bullpen.core.roster.agents import Agent
from bullpen.core.roster.teams import Team, add_team
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from bullpen.ops.demo.bulk import bulk_writer
from bullpen.ops.demo.company import AGENTS, TEAMS
from bullpen.ops.demo.plan import HistoryPlan
from bullpen.ops.demo.simulation import Simulation

INSTALLATION_TABLES = frozenset({"store_identity", "system_agents", "workers"})
"""Tables whose rows are no data of an owner: they are kept."""

NEW_HOME_HINT = (
    "Use a new home: BULLPEN_HOME=~/bullpen-history bullpen demo history. With PostgreSQL, use a"
    " new database."
)

Progress = Callable[[int], object]
"""Told the time up to which the history is written."""


class _ClockAt:
    """A clock that always tells the same time."""

    def __init__(self, now: int) -> None:
        self._now = now

    def now(self) -> int:
        """The time of all that is written."""
        return self._now

    def monotonic(self) -> int:
        """No time passes."""
        return 0


@dataclass(frozen=True, slots=True)
class WrittenHistory:
    """What was written: the plan, and the number of rows by table."""

    plan: HistoryPlan
    rows: Mapping[str, int]


def write_history(settings: Settings, plan: HistoryPlan, progress: Progress) -> WrittenHistory:
    """Write the history of this plan; the store is empty again if that fails or is interrupted."""
    with closing(open_store(settings, clock=_ClockAt(plan.since))) as store:
        check_empty(store)
        try:
            _add_company(store)
            counts = _write_rows(store, plan, progress)
        except BaseException:
            clear(store)
            raise
    return WrittenHistory(plan, counts)


def check_empty(store: Store) -> None:
    """Refuse a store with anything of an owner in it."""
    with store.read() as tx:
        filled = [name for name in _tables() if tx.fetch(f"SELECT 1 FROM {name} LIMIT 1")]  # noqa: S608 - ours
    if filled:
        shown = ", ".join(filled[:4]) + (" and others" if len(filled) > 4 else "")
        raise InTheWay(f"the store is not empty: it has rows in {shown}", hint=NEW_HOME_HINT)


def clear(store: Store) -> None:
    """Delete every row except those of the installation."""
    with bulk_writer(store) as writer:
        writer.clear(_tables())


def _tables() -> list[str]:
    return sorted(whole_schema().tables.keys() - INSTALLATION_TABLES)


def _add_company(store: Store) -> None:
    """Add the agents and teams. The provider is echo: nothing that is pending costs anything."""
    with store.write() as tx:
        for each in AGENTS:
            add_agent(tx, Agent(id=each.id, name=each.name, model=each.model.name))
        for team in TEAMS:
            add_team(
                tx, Team(id=team.id, name=team.name, leader=team.members[0], members=team.members)
            )


def _write_rows(store: Store, plan: HistoryPlan, progress: Progress) -> Mapping[str, int]:
    simulation = Simulation(plan)
    counts: Counter[str] = Counter()
    with bulk_writer(store) as writer:
        for rows in simulation.run():
            writer.write(rows)
            counts.update({name: len(each) for name, each in rows.tables().items()})
            progress(simulation.now)
        writer.finish()
    return counts
