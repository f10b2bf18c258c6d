"""The effects of removing an agent or a team: what else is removed or paused."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bullpen.core.heartbeats.manage import get_heartbeat
from bullpen.core.heartbeats.model import HeartbeatState
from bullpen.core.inspect.lanes import get_lane
from bullpen.core.roster.agents import get_agent
from bullpen.core.roster.teams import get_team, teams_of
from bullpen.core.schedules.model import ScheduleFilter, ScheduleState, list_schedules
from bullpen.core.store.transaction import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalPreview:
    """The effects of removing an agent."""

    agent: str
    waiting: int
    running: int
    """The pending and processing messages, which are cancelled, and only with force."""
    teams: tuple[str, ...]
    """The teams that it leaves."""
    disbanded: tuple[str, ...]
    """The teams whose last member it is, which are removed."""
    schedules: tuple[str, ...]
    """The schedules of this agent, which are paused."""
    heartbeat: bool
    """Whether its heartbeat is on."""


def preview_removal(tx: Transaction, agent_id: str) -> RemovalPreview:
    """The effects of removing this agent."""
    get_agent(tx, agent_id)
    lane = get_lane(tx, agent_id)
    teams = teams_of(tx, agent_id)
    disbanded = [each.id for each in teams if len(each.members) == 1]
    return RemovalPreview(
        agent=agent_id,
        waiting=lane.pending,
        running=lane.processing,
        teams=tuple(each.id for each in teams),
        disbanded=tuple(disbanded),
        schedules=_orphaned_schedules(tx, agent_id, disbanded),
        heartbeat=get_heartbeat(tx, agent_id).state is HeartbeatState.ON,
    )


def schedules_orphaned_by_team(tx: Transaction, team_id: str) -> tuple[str, ...]:
    """The schedules that are paused when this team is removed."""
    return _orphaned_schedules(tx, None, [get_team(tx, team_id).id])


def _orphaned_schedules(
    tx: Transaction, agent: str | None, teams: Iterable[str]
) -> tuple[str, ...]:
    wanted = [ScheduleFilter(team_id=each, state=ScheduleState.ACTIVE) for each in teams]
    if agent is not None:
        wanted.append(ScheduleFilter(agent=agent, state=ScheduleState.ACTIVE))
    found = list_schedules(tx) if wanted else []
    return tuple(each.id for each in found if any(one.matches(each) for one in wanted))
