"""Who is in a team: agents join and leave it."""

from __future__ import annotations

from collections.abc import Sequence

from bullpen.core.errors import BadTeam
from bullpen.core.roster.team import Team
from bullpen.core.roster.teams import change_team, lock_team
from bullpen.core.store.transaction import Transaction


def add_members(tx: Transaction, team_id: str, agents: Sequence[str]) -> Team:
    """Agents come into a team, behind those who are there; who is there already stays as it is."""
    team = lock_team(tx, team_id)
    new = [each for each in dict.fromkeys(agents) if each not in team.members]
    return change_team(tx, team_id, members=(*team.members, *new)) if new else team


def remove_members(
    tx: Transaction, team_id: str, agents: Sequence[str], leader: str | None = None
) -> Team:
    """Agents go out of a team; if its leader goes, the named one leads, or who is next."""
    team = lock_team(tx, team_id)
    for each in agents:
        if each not in team.members:
            raise BadTeam(
                f"{each[:40]!r} is not a member of {team_id}",
                hint=f"Its members are {', '.join(team.members)}.",
            )
    rest = tuple(each for each in team.members if each not in agents)
    if not rest:
        raise BadTeam(
            f"{team_id} would have no member any more",
            hint=f"To disband it: bullpen team remove {team_id}",
        )
    leads = leader or (team.leader if team.leader in rest else rest[0])
    return change_team(tx, team_id, members=rest, leader=leads)
