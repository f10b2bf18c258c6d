"""Who makes a schedule, and for whom that one may: a person, a key, or an agent."""

from __future__ import annotations

from bullpen.core.clock import HOUR
from bullpen.core.errors import OutOfReach, TooMany
from bullpen.core.roster.agent import Scheduling
from bullpen.core.roster.find import get_agent
from bullpen.core.roster.teams import teams_of
from bullpen.core.schedules.find import ScheduleFilter, list_schedules
from bullpen.core.schedules.schedule import AGENT_AUTHOR_PREFIX, Schedule, ScheduleState
from bullpen.core.store.transaction import Transaction


def agent_of_author(author: str) -> str | None:
    """The agent that this author is, if it is one."""
    return (
        author.removeprefix(AGENT_AUTHOR_PREFIX) if author.startswith(AGENT_AUTHOR_PREFIX) else None
    )


def check_reach(tx: Transaction, author: str, agent: str | None, team_id: str | None) -> None:
    """Refuse an agent that makes a schedule for somebody for whom it may not."""
    maker = agent_of_author(author)
    if maker is None:
        return
    may = get_agent(tx, maker).scheduling
    if may is Scheduling.NONE:
        raise OutOfReach(
            f"@{maker} may make no schedules", hint=f"bullpen agent set {maker} --scheduling self"
        )
    if agent == maker:
        return
    if may is not Scheduling.TEAM:
        raise OutOfReach(
            f"@{maker} may make schedules for itself only",
            hint=f"bullpen agent set {maker} --scheduling team",
        )
    teams = teams_of(tx, maker)
    if team_id is None and not any(agent in team.members for team in teams):
        raise OutOfReach(f"@{agent} is no teammate of @{maker}")
    if team_id is not None and team_id not in {team.id for team in teams}:
        raise OutOfReach(f"@{maker} is not in the team {team_id}")


def check_schedule_limit(tx: Transaction, author: str) -> None:
    """Refuse one more schedule of an agent that has made many, be they done already."""
    maker = agent_of_author(author)
    if maker is None:
        return
    made = list_schedules(tx, ScheduleFilter(made_by=author))
    counted = sum(
        each.state is not ScheduleState.DONE or each.created_at > tx.now - HOUR for each in made
    )
    if counted >= tx.settings.agent_schedules:
        raise TooMany(f"@{maker} has made {counted} schedules, and may have no more for now")


def check_author(author: str, schedule: Schedule) -> None:
    """Refuse an agent that would touch what it did not make."""
    maker = agent_of_author(author)
    if maker is not None and schedule.made_by != author:
        raise OutOfReach(
            f"the schedule {schedule.id} was not made by @{maker}",
            hint="An agent sees, pauses and removes what it made itself.",
        )
