"""Whom a schedule asks."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import bindparam, select

from bullpen.core.models import AGENTS
from bullpen.core.roster.teams import find_team
from bullpen.core.schedules.schedule import Schedule
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction

SELECT_AGENT: Statement[tuple[str]] = Statement(
    lambda: select(AGENTS.c.id).where(AGENTS.c.id == bindparam("agent"))
)


@dataclass(frozen=True, slots=True)
class ScheduleTarget:
    """An agent; of a team, its leader."""

    agent: str
    team_id: str | None


def find_target(tx: Transaction, schedule: Schedule) -> ScheduleTarget | None:
    """Who is asked; None if there is nobody any more."""
    if schedule.team_id is not None:
        team = find_team(tx, schedule.team_id)
        return None if team is None else ScheduleTarget(team.leader, team.id)
    row = tx.one(SELECT_AGENT, {"agent": schedule.agent})
    return None if row is None else ScheduleTarget(row[0], None)
