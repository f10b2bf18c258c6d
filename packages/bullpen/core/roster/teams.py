"""Teams: members, leader and limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypedDict, Unpack

from sqlalchemy import bindparam, delete, insert, select, update

from bullpen.core.errors import BadTeam, NameTaken, UnknownAgent, UnknownTeam
from bullpen.core.events.append import append_event
from bullpen.core.events.company import TeamAdded, TeamChanged, TeamRemoved
from bullpen.core.ids import check_new_name
from bullpen.core.models import AGENTS, TEAM_MEMBERS, TEAMS
from bullpen.core.roster.agents import agent_names, check_display_name
from bullpen.core.store.statement import Statement, columns
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text, describe_unknown

T = TEAMS.c

M = TEAM_MEMBERS.c


class DeliveryMode(StrEnum):
    """How the answers of a team are sent to the person who wrote."""

    STREAM = "stream"
    """Each as soon as it is ready."""
    AGGREGATE = "aggregate"
    """All in one response, when the conversation is finished."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """One team."""

    id: str
    name: str = ""
    leader: str
    delivery: DeliveryMode = DeliveryMode.STREAM
    max_hops: int | None = None
    """None is the value of the setting with the same name; so for the next two."""
    max_messages: int | None = None
    max_cost: float | None = None
    members: tuple[str, ...] = ()
    """In the order of the team; stored in a table of their own."""


class TeamChange(TypedDict, total=False):
    """The fields of a team to change."""

    name: str
    leader: str
    members: tuple[str, ...]
    delivery: DeliveryMode
    max_hops: int | None
    max_messages: int | None
    max_cost: float | None


FIND: Statement[Team] = Statement(
    lambda: select(*columns(Team, TEAMS)).where(T.id == bindparam("team")), Team
)

LOCK: Statement[tuple[str]] = Statement(
    lambda: select(T.id).where(T.id == bindparam("team")).with_for_update()
)

LIST: Statement[Team] = Statement(lambda: select(*columns(Team, TEAMS)).order_by(T.id), Team)

MEMBERS: Statement[tuple[str]] = Statement(
    lambda: select(M.agent).where(M.team_id == bindparam("team")).order_by(M.position)
)

TEAMS_OF_AGENT: Statement[tuple[str]] = Statement(
    lambda: select(M.team_id).where(M.agent == bindparam("agent")).order_by(M.team_id)
)

FIND_AGENT_ID: Statement[tuple[str]] = Statement(
    lambda: select(AGENTS.c.id).where(AGENTS.c.id == bindparam("name"))
)

INSERT: Statement[None] = Statement(
    lambda: insert(TEAMS).values({column.name: bindparam(column.name) for column in T})
)

UPDATE: Statement[None] = Statement(
    lambda: (
        update(TEAMS)
        .where(T.id == bindparam("team"))
        .values(
            {
                **{
                    column.name: bindparam(column.name)
                    for column in columns(Team, TEAMS)
                    if column.name != "id"
                },
                "updated_at": bindparam("now"),
            }
        )
    )
)

DELETE: Statement[None] = Statement(lambda: delete(TEAMS).where(T.id == bindparam("team")))

DELETE_MEMBERS: Statement[None] = Statement(
    lambda: delete(TEAM_MEMBERS).where(M.team_id == bindparam("team"))
)

INSERT_MEMBER: Statement[None] = Statement(
    lambda: insert(TEAM_MEMBERS).values(
        team_id=bindparam("team"), agent=bindparam("agent"), position=bindparam("position")
    )
)


def add_team(tx: Transaction, team: Team) -> None:
    """Add a team of agents that exist."""
    check_new_name(team.id)
    if find_team(tx, team.id) is not None or tx.one(FIND_AGENT_ID, {"name": team.id}) is not None:
        raise NameTaken(f"the name {team.id!r} is already used by an agent or a team")
    _check(tx, team)
    tx.write(INSERT, {**_values(team), "id": team.id, "created_at": tx.now, "updated_at": tx.now})
    _insert_members(tx, team)
    append_event(tx, TeamAdded(team=team.id))


def change_team(tx: Transaction, team_id: str, **change: Unpack[TeamChange]) -> Team:
    """Change the named fields, and return the changed team."""
    changed = replace(lock_team(tx, team_id), **change)
    _check(tx, changed)
    _update(tx, changed)
    append_event(tx, TeamChanged(team=team_id, changed=sorted(change)))
    return changed


def add_members(tx: Transaction, team_id: str, agents: Sequence[str]) -> Team:
    """Add agents to the end of a team; current members are skipped."""
    team = lock_team(tx, team_id)
    new = [each for each in dict.fromkeys(agents) if each not in team.members]
    return change_team(tx, team_id, members=(*team.members, *new)) if new else team


def remove_members(
    tx: Transaction, team_id: str, agents: Sequence[str], leader: str | None = None
) -> Team:
    """Remove agents from a team; `leader` or the next member replaces a removed leader."""
    team = lock_team(tx, team_id)
    for each in agents:
        if each not in team.members:
            raise BadTeam(
                f"{each[:40]!r} is not a member of {team_id}",
                hint=f"The members are {', '.join(team.members)}.",
            )
    rest = tuple(each for each in team.members if each not in agents)
    if not rest:
        raise BadTeam(
            f"team {team_id!r} would have no members",
            hint=f"To remove the team: bullpen team remove {team_id}",
        )
    leads = leader or (team.leader if team.leader in rest else rest[0])
    return change_team(tx, team_id, members=rest, leader=leads)


def disband_team(tx: Transaction, team_id: str) -> None:
    """Delete a team's rows; its agents and its room's history stay."""
    get_team(tx, team_id)
    tx.write(DELETE_MEMBERS, {"team": team_id})
    tx.write(DELETE, {"team": team_id})
    append_event(tx, TeamRemoved(team=team_id))


def find_team(tx: Transaction, team_id: str) -> Team | None:
    """The team of this id, if there is one."""
    team = tx.one(FIND, {"team": team_id})
    return None if team is None else _with_members(tx, team)


def get_team(tx: Transaction, team_id: str) -> Team:
    """The team of this id, which must exist."""
    check_text(team_id, tx.settings.message_bytes, "the team's id")
    team = find_team(tx, team_id)
    if team is None:
        raise UnknownTeam(describe_unknown("team", team_id, (each.id for each in list_teams(tx))))
    return team


def lock_team(tx: Transaction, team_id: str) -> Team:
    """The team of this id, locked until the transaction ends."""
    tx.one(LOCK, {"team": team_id})
    return get_team(tx, team_id)


def list_teams(tx: Transaction) -> list[Team]:
    """All teams, by id."""
    return [_with_members(tx, each) for each in tx.all(LIST, {})]


def teams_of(tx: Transaction, agent: str) -> list[Team]:
    """The teams of an agent."""
    return [get_team(tx, team) for (team,) in tx.all(TEAMS_OF_AGENT, {"agent": agent})]


def _with_members(tx: Transaction, team: Team) -> Team:
    return replace(team, members=tuple(agent for (agent,) in tx.all(MEMBERS, {"team": team.id})))


def _check(tx: Transaction, team: Team) -> None:
    check_display_name(team.name, tx.settings.message_bytes)
    if not team.members or len(set(team.members)) < len(team.members):
        raise BadTeam(f"team {team.id!r} needs members, each named once")
    for agent in team.members:
        check_text(agent, tx.settings.message_bytes, "a member's id")
        if tx.one(FIND_AGENT_ID, {"name": agent}) is None:
            raise UnknownAgent(describe_unknown("agent", agent, agent_names(tx)))
    if team.leader not in team.members:
        raise BadTeam(f"the leader {team.leader[:40]!r} is not a member of team {team.id!r}")
    for limit in (team.max_hops, team.max_messages, team.max_cost):
        if limit is not None and not 0 <= limit < 1_000_000_000:
            raise BadTeam(f"the limit {limit} of team {team.id!r} is out of range")


def _values(team: Team) -> dict[str, object]:
    return {
        "name": team.name,
        "leader": team.leader,
        "delivery": team.delivery.value,
        "max_hops": team.max_hops,
        "max_messages": team.max_messages,
        "max_cost": team.max_cost,
    }


def _update(tx: Transaction, team: Team) -> None:
    tx.write(UPDATE, {**_values(team), "team": team.id, "now": tx.now})
    tx.write(DELETE_MEMBERS, {"team": team.id})
    _insert_members(tx, team)


def _insert_members(tx: Transaction, team: Team) -> None:
    tx.write_each(
        INSERT_MEMBER,
        [
            {"team": team.id, "agent": agent, "position": position}
            for position, agent in enumerate(team.members)
        ],
    )
