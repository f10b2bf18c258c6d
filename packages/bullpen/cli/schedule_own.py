"""Whose schedules a command may look at and change: a person's all, an agent's its own."""

from __future__ import annotations

from bullpen.cli.acting import acting_agent
from bullpen.core.errors import OutOfReach
from bullpen.core.roster.teams import teams_of
from bullpen.core.schedules.author import agent_in, check_own, check_target
from bullpen.core.schedules.find import ALL, Wanted, get_schedule, list_schedules, see_schedule
from bullpen.core.schedules.schedule import BY_AGENT, OWNER, Schedule
from bullpen.core.store.transaction import Transaction


def author() -> str:
    """As whom a schedule is made or touched."""
    agent = acting_agent()
    return OWNER if agent is None else f"{BY_AGENT}{agent}"


def own_schedule(tx: Transaction, name: str, *, makes_work: bool = False) -> Schedule:
    """A schedule that may be changed by who acts; with work, as much as if it were made now."""
    # Work locks the agent's lane, and a lane is locked before a schedule.
    schedule = see_schedule(tx, name) if makes_work else get_schedule(tx, name)
    check_own(author(), schedule)
    if makes_work:
        check_target(tx, author(), schedule.agent, schedule.team_id)
    return schedule


def shown_schedule(tx: Transaction, name: str) -> Schedule:
    """A schedule that may be looked at by who acts."""
    schedule = see_schedule(tx, name)
    agent = agent_in(author())
    if agent is not None and not _concerns(tx, agent, schedule):
        raise OutOfReach(
            f"the schedule {schedule.id} is neither made by @{agent} nor for it",
            hint="`bullpen schedule list` shows those that are.",
        )
    return schedule


def shown_schedules(tx: Transaction, wanted: Wanted = ALL) -> list[Schedule]:
    """Those of the wanted that may be looked at by who acts."""
    agent = agent_in(author())
    found = list_schedules(tx, wanted)
    return found if agent is None else [each for each in found if _concerns(tx, agent, each)]


def _concerns(tx: Transaction, agent: str, schedule: Schedule) -> bool:
    if agent in (schedule.agent, agent_in(schedule.made_by)):
        return True
    return schedule.team_id in {team.id for team in teams_of(tx, agent)}
