"""Whose schedules a command may look at and change: a person's all, an agent's its own."""

from __future__ import annotations

from bullpen.cli.acting import acting_agent
from bullpen.core.errors import OutOfReach
from bullpen.core.roster.teams import teams_of
from bullpen.core.schedules.author import agent_of_author, check_author, check_reach
from bullpen.core.schedules.find import (
    ALL_SCHEDULES,
    ScheduleFilter,
    get_schedule,
    list_schedules,
    lock_schedule,
)
from bullpen.core.schedules.schedule import AGENT_AUTHOR_PREFIX, OWNER_AUTHOR, Schedule
from bullpen.core.store.transaction import Transaction


def author() -> str:
    """As whom a schedule is made or touched."""
    agent = acting_agent()
    return OWNER_AUTHOR if agent is None else f"{AGENT_AUTHOR_PREFIX}{agent}"


def editable_schedule(tx: Transaction, name: str, *, makes_work: bool = False) -> Schedule:
    """A schedule that may be changed by who acts; with work, as much as if it were made now."""
    # Work locks the agent's lane, and a lane is locked before a schedule.
    schedule = get_schedule(tx, name) if makes_work else lock_schedule(tx, name)
    check_author(author(), schedule)
    if makes_work:
        check_reach(tx, author(), schedule.agent, schedule.team_id)
    return schedule


def visible_schedule(tx: Transaction, name: str) -> Schedule:
    """A schedule that may be looked at by who acts."""
    schedule = get_schedule(tx, name)
    agent = agent_of_author(author())
    if agent is not None and not _concerns(tx, agent, schedule):
        raise OutOfReach(
            f"the schedule {schedule.id} is neither made by @{agent} nor for it",
            hint="`bullpen schedule list` shows those that are.",
        )
    return schedule


def visible_schedules(tx: Transaction, wanted: ScheduleFilter = ALL_SCHEDULES) -> list[Schedule]:
    """Those of the wanted that may be looked at by who acts."""
    agent = agent_of_author(author())
    found = list_schedules(tx, wanted)
    return found if agent is None else [each for each in found if _concerns(tx, agent, each)]


def _concerns(tx: Transaction, agent: str, schedule: Schedule) -> bool:
    if agent in (schedule.agent, agent_of_author(schedule.made_by)):
        return True
    return schedule.team_id in {team.id for team in teams_of(tx, agent)}
