"""Teams: agents with a leader, a room and limits."""

from __future__ import annotations

from pydantic import BaseModel, Field

from bullpen.api.context import read, write
from bullpen.api.models import Done
from bullpen.api.roster.teams import TeamAnswer, TeamBody, TeamMap, put_team, reach_all, team_map
from bullpen.api.route import blueprint, route
from bullpen.core.access.key import Scope
from bullpen.core.errors import NameTaken, NotFound
from bullpen.core.roster.team_removal import remove_team
from bullpen.core.roster.teams import get_team

ROUTES = blueprint("teams", "Agents that work together.")


class TeamPath(BaseModel):
    """Which team."""

    team_id: str = Field(description="the team's id")


class TeamDone(Done):
    """The team as it is now."""

    team: TeamAnswer


@route(ROUTES, "GET", "/api/teams", scope=Scope.READ, answer=TeamMap)
def teams() -> TeamMap:
    """List the teams by their ids."""
    with read() as tx:
        return team_map(tx)


@route(
    ROUTES,
    "GET",
    "/api/teams/<team_id>",
    scope=Scope.READ,
    answer=TeamAnswer,
    errors=(NotFound,),
)
def team(path: TeamPath) -> TeamAnswer:
    """Show one team."""
    with read() as tx:
        found = get_team(tx, path.team_id)
    reach_all(found.members)
    return TeamAnswer.of(found)


@route(
    ROUTES,
    "PUT",
    "/api/teams/<team_id>",
    scope=Scope.ADMIN,
    answer=TeamDone,
    errors=(NameTaken,),
    audited=True,
)
def put(path: TeamPath, body: TeamBody) -> TeamDone:
    """Make a team, or change one.

    A new one needs a name, agents and a leader. Of one that exists, what is not sent stays.
    """
    with write() as tx:
        return TeamDone(team=TeamAnswer.of(put_team(tx, path.team_id, body)))


@route(
    ROUTES,
    "PATCH",
    "/api/teams/<team_id>",
    scope=Scope.ADMIN,
    answer=TeamDone,
    errors=(NotFound,),
    audited=True,
)
def change(path: TeamPath, body: TeamBody) -> TeamDone:
    """Change a team that exists; what is not sent stays."""
    with write() as tx:
        return TeamDone(team=TeamAnswer.of(put_team(tx, path.team_id, body, create=False)))


@route(
    ROUTES,
    "DELETE",
    "/api/teams/<team_id>",
    scope=Scope.ADMIN,
    answer=Done,
    errors=(NotFound,),
    audited=True,
)
def remove(path: TeamPath) -> Done:
    """Disband a team; its agents stay, and so does what was said in its room."""
    with write() as tx:
        reach_all(get_team(tx, path.team_id).members)
        remove_team(tx, path.team_id)
    return Done()
