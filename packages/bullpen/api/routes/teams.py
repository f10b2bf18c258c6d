"""/api/teams: list, add, change and remove teams."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import BaseModel, Field, RootModel

from bullpen.api.context import caller, read, require_reach, write
from bullpen.api.route import ADMIN, READ, Routes
from bullpen.api.routes.agents import require_own_names
from bullpen.api.schemas import Answer, Done, LenientBody, ShortText, only_changes
from bullpen.core.company import remove_team
from bullpen.core.errors import BadRequest, BadTeam, NameTaken, NotFound, UnknownAgent
from bullpen.core.ids import check_name
from bullpen.core.roster.teams import (
    DeliveryMode,
    Team,
    TeamChange,
    add_team,
    change_team,
    find_team,
    get_team,
    list_teams,
)
from bullpen.core.store.transaction import Transaction

routes = Routes("teams", "Teams of agents.")
Limit = Annotated[int, Field(ge=0, lt=1_000_000_000)]


class LimitsBody(LenientBody):
    """Limits of the team's conversations; null: the setting of the same name."""

    max_hops: Limit | None = None
    max_messages: Limit | None = None
    max_cost: Annotated[float, Field(ge=0, lt=1_000_000_000, allow_inf_nan=False)] | None = None


class TeamBody(LenientBody):
    """A new team, or the fields of a team to change."""

    name: ShortText | None = None
    agents: list[ShortText] | None = Field(None, max_length=1000)
    leader_agent: ShortText | None = None
    delivery: DeliveryMode | None = None
    limits: LimitsBody | None = None


class LimitsAnswer(Answer):
    """Limits of the team's conversations; null: the setting of the same name."""

    max_hops: int | None
    max_messages: int | None
    max_cost: float | None


class TeamAnswer(Answer):
    """A team."""

    name: str
    agents: list[str] = Field(validation_alias="members")
    leader_agent: str = Field(validation_alias="leader")
    delivery: DeliveryMode
    limits: LimitsAnswer


class TeamMap(RootModel[dict[str, TeamAnswer]]):
    """Teams by their ids."""


class TeamPath(BaseModel):
    """Selects a team."""

    team_id: str = Field(description="The team's id.")


class TeamDone(Done):
    """The team after the change."""

    team: TeamAnswer


@routes.get("/api/teams", READ)
def teams() -> TeamMap:
    """List teams by id."""
    with read() as tx:
        return team_map(tx)


@routes.get("/api/teams/<team_id>", READ, NotFound)
def team(path: TeamPath) -> TeamAnswer:
    """Get a team."""
    with read() as tx:
        team = get_team(tx, path.team_id)
    reach_all(team.members)
    return _team_answer(team)


@routes.put("/api/teams/<team_id>", ADMIN, NameTaken)
def put(path: TeamPath, body: TeamBody) -> TeamDone:
    """Create or change a team.

    A new team requires a name, agents and a leader. For an existing team, omitted fields are
    unchanged.
    """
    with write() as tx:
        return TeamDone(team=_team_answer(put_team(tx, path.team_id, body)))


@routes.patch("/api/teams/<team_id>", ADMIN, NotFound)
def change(path: TeamPath, body: TeamBody) -> TeamDone:
    """Change a team; omitted fields are unchanged."""
    with write() as tx:
        return TeamDone(team=_team_answer(put_team(tx, path.team_id, body, create=False)))


@routes.delete("/api/teams/<team_id>", ADMIN, NotFound)
def remove(path: TeamPath) -> Done:
    """Remove a team.

    Its agents and the posts of its room are kept.
    """
    with write() as tx:
        reach_all(get_team(tx, path.team_id).members)
        remove_team(tx, path.team_id)
    return Done()


def team_map(tx: Transaction) -> TeamMap:
    """Return the teams of which the caller reaches every member."""
    teams = (each for each in list_teams(tx) if all(map(caller().can_reach, each.members)))
    return TeamMap({each.id: _team_answer(each) for each in teams})


def reach_all(agents: Iterable[str]) -> None:
    """Refuse a caller who does not reach all of these agents."""
    for agent in agents:
        require_reach(agent)


def put_team(tx: Transaction, team_id: str, body: TeamBody, *, create: bool = True) -> Team:
    """Add this team, or change the given fields."""
    before = find_team(tx, check_name(team_id)) if create else get_team(tx, team_id)
    reach_all(body.agents or ())
    reach_all(() if before is None else before.members)
    change = _team_change(body)
    names = [] if before and body.name == before.name else [body.name or team_id]
    require_own_names(tx, names if before else [team_id, *names], team=team_id)
    try:
        if before is not None:
            change = only_changes(change, before)
            return change_team(tx, team_id, **change) if change else before
        if "members" not in change or "leader" not in change or "name" not in change:
            raise BadRequest(
                "a new team requires a name, agents and a leader",
                hint="Send `name`, `agents` and `leader_agent`.",
            )
        new = Team(id=team_id, **change)
        add_team(tx, new)
    except UnknownAgent as error:
        raise BadTeam(str(error), hint="`GET /api/agents` lists the agents.") from None
    return new


def _team_answer(team: Team) -> TeamAnswer:
    return TeamAnswer.from_row(team, limits=team)


def _team_change(body: TeamBody) -> TeamChange:
    change = TeamChange()
    if body.name is not None:
        change["name"] = body.name
    if body.agents is not None:
        change["members"] = tuple(body.agents)
    if body.leader_agent is not None:
        change["leader"] = body.leader_agent
    if body.delivery is not None:
        change["delivery"] = body.delivery
    if body.limits is not None:
        for name in body.limits.model_fields_set:
            change[name] = getattr(body.limits, name)  # type: ignore[literal-required]
    return change
