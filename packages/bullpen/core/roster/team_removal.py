"""Teams removed, with the schedules that hang on them."""

from __future__ import annotations

from bullpen.core.roster.teams import change_team, disband_team, get_team, lock_team, teams_of
from bullpen.core.schedules.stop import pause_orphans
from bullpen.core.store.transaction import Transaction


def remove_team(tx: Transaction, team_id: str) -> None:
    """Remove a team and stop its schedules; its agents and its room's history stay."""
    get_team(tx, team_id)
    pause_orphans(tx, f"the team {team_id} was disbanded", team_id=team_id)
    disband_team(tx, team_id)


def leave_teams(tx: Transaction, agent: str) -> None:
    """Take an agent out of its teams; the next member leads, and an empty team is disbanded."""
    for team_id in [team.id for team in teams_of(tx, agent)]:
        team = lock_team(tx, team_id)
        rest = tuple(member for member in team.members if member != agent)
        if not rest:
            remove_team(tx, team.id)
        else:
            leader = rest[0] if team.leader == agent else team.leader
            change_team(tx, team.id, members=rest, leader=leader)
