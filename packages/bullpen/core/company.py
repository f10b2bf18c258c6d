"""Agents and teams: added, changed and removed with their lanes, schedules and sessions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import PurePath
from typing import Unpack

from sqlalchemy import bindparam, delete, insert, select, update

from bullpen.core.errors import BadName, LaneBusy, NameTaken
from bullpen.core.events.append import append_event
from bullpen.core.events.company import AgentAdded, AgentChanged, AgentRemoved
from bullpen.core.events.conversation import SessionReset
from bullpen.core.heartbeats.manage import remove_heartbeat
from bullpen.core.ids import check_new_name
from bullpen.core.models import AGENTS, LANES, MESSAGES, SESSIONS, TEAMS
from bullpen.core.models.base import const, decode_numbers
from bullpen.core.queue.dead_letters import SELECT_OLDEST
from bullpen.core.queue.disposition import is_paused_by_failure
from bullpen.core.queue.lanes import (
    LanePolicy,
    archive_lane,
    configure_lane,
    create_lane,
    lock_lane,
    refresh_lane,
    resume_lane,
)
from bullpen.core.queue.manage import cancel
from bullpen.core.roster.agents import (
    HTTP,
    Agent,
    AgentChange,
    check_display_name,
    find_agent,
    get_agent,
    list_agents,
)
from bullpen.core.roster.providers import check_model
from bullpen.core.roster.teams import change_team, disband_team, get_team, lock_team, teams_of
from bullpen.core.schedules.manage import pause_orphans
from bullpen.core.states import LaneState
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import check_text

A = AGENTS.c

NO_LIMIT = 1 << 31

_CHANGEABLE_COLUMNS = tuple(
    each.name for each in fields(Agent) if each.name not in ("id", "resets")
)

INSERT_AGENT: Statement[None] = Statement(
    lambda: insert(AGENTS).values({column.name: bindparam(column.name) for column in A})
)

UPDATE_AGENT: Statement[None] = Statement(
    lambda: (
        update(AGENTS)
        .where(A.id == bindparam("agent"))
        .values(
            {
                **{name: bindparam(name) for name in _CHANGEABLE_COLUMNS},
                "updated_at": bindparam("now"),
            }
        )
    )
)

COUNT_RESET: Statement[None] = Statement(
    lambda: (
        update(AGENTS)
        .where(A.id == bindparam("agent"))
        .values(resets=A.resets + const(1), updated_at=bindparam("now"))
    )
)

DELETE_AGENT: Statement[None] = Statement(lambda: delete(AGENTS).where(A.id == bindparam("agent")))

FIND_TEAM_ID: Statement[tuple[str]] = Statement(
    lambda: select(TEAMS.c.id).where(TEAMS.c.id == bindparam("name"))
)

DELETE_SESSIONS: Statement[None] = Statement(
    lambda: delete(SESSIONS).where(SESSIONS.c.agent == bindparam("agent"))
)

SET_OUTSIDE: Statement[None] = Statement(
    lambda: (
        update(LANES).where(LANES.c.agent == bindparam("lane")).values(outside=bindparam("outside"))
    )
)

FIND_RUNNING_BATCH: Statement[tuple[str | None]] = Statement(
    lambda: select(LANES.c.batch).where(
        LANES.c.agent == bindparam("agent"), LANES.c.claim_token.is_not(None)
    )
)

FIND_MESSAGE_ID: Statement[tuple[str]] = Statement(
    lambda: select(MESSAGES.c.message_id).where(MESSAGES.c.id == bindparam("message"))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSwitch:
    """A change of one agent's provider and model."""

    agent: str
    old_provider: str
    old_model: str
    provider: str
    model: str
    """Empty means the provider's default."""

    @property
    def is_change(self) -> bool:
        """Whether the provider or the model changes."""
        return (self.old_provider, self.old_model) != (self.provider, self.model)


def add_agent(tx: Transaction, agent: Agent, policy: LanePolicy | None = None) -> None:
    """Add an agent and create its lane; an agent that was removed before gets its old lane back.

    Without a policy, an old lane keeps its own one.
    """
    check_new_name(agent.id)
    _check_agent(tx, agent)
    if find_agent(tx, agent.id) is not None or _is_team(tx, agent.id):
        raise NameTaken(f"the name {agent.id!r} is already used by an agent or a team")
    tx.write(INSERT_AGENT, {**_values(agent), "created_at": tx.now, "updated_at": tx.now})
    create_lane(tx, agent.id, policy)
    if policy is not None:
        configure_lane(tx, agent.id, policy)
    if lock_lane(tx, agent.id).state == LaneState.ARCHIVED:
        resume_lane(tx, agent.id)
    _update_lane(tx, agent)
    append_event(tx, AgentAdded(agent=agent.id))


def change_agent(tx: Transaction, agent_id: str, **change: Unpack[AgentChange]) -> Agent:
    """Change the named fields, and return the agent as it is now.

    A lane that a failed run paused is resumed if the next run is set up differently.
    """
    lock_lane(tx, get_agent(tx, agent_id).id)
    before = get_agent(tx, agent_id)
    changed = replace(before, **change)
    _check_agent(tx, changed)
    _update(tx, changed)
    if (before.provider, before.directory) != (changed.provider, changed.directory):
        # A session belongs to its provider and to the directory in which it was started.
        _reset_sessions(tx, agent_id)
        changed = replace(changed, resets=before.resets + 1)
    _update_lane(tx, changed)
    append_event(tx, AgentChanged(agent=agent_id, changed=sorted(change)))
    if _run_setup(before) != _run_setup(changed) and is_paused_by_failure(tx, agent_id):
        resume_lane(tx, agent_id)
    return changed


def _run_setup(agent: Agent) -> tuple[str, ...]:
    """What can make a run fail until a person changes it."""
    return agent.provider, agent.model, agent.directory, agent.sandbox


def reset_agent(tx: Transaction, agent_id: str) -> None:
    """Delete its sessions: the next run starts a new one, and a run in progress keeps none."""
    get_agent(tx, agent_id)
    _reset_sessions(tx, agent_id)
    append_event(tx, SessionReset(agent=agent_id))


def remove_agent(tx: Transaction, agent_id: str, *, force: bool = False) -> None:
    """Remove an agent and its sessions, remove it from its teams, and archive its lane.

    Its history and its directory are kept. `force` cancels its messages.
    """
    get_agent(tx, agent_id)
    lane = lock_lane(tx, agent_id)
    if not force and (lane.pending or lane.claim_token is not None):
        raise LaneBusy(
            f"@{agent_id} has unfinished messages: {lane.pending} pending"
            + (", and a run in progress" if lane.claim_token is not None else ""),
            hint="Wait until they are completed, or cancel them with --force.",
        )
    _cancel_all(tx, agent_id, f"{agent_id} was removed")
    leave_teams(tx, agent_id)
    pause_orphans(tx, f"{agent_id} was removed", agent=agent_id)
    remove_heartbeat(tx, agent_id)
    tx.write(DELETE_SESSIONS, {"agent": agent_id})
    tx.write(DELETE_AGENT, {"agent": agent_id})
    archive_lane(tx, agent_id, "removed")
    append_event(tx, AgentRemoved(agent=agent_id))


def leave_teams(tx: Transaction, agent: str) -> None:
    """Remove an agent from its teams; the next member becomes leader, an empty team is removed."""
    for team_id in [team.id for team in teams_of(tx, agent)]:
        team = lock_team(tx, team_id)
        rest = tuple(member for member in team.members if member != agent)
        if not rest:
            remove_team(tx, team.id)
        else:
            leader = rest[0] if team.leader == agent else team.leader
            change_team(tx, team.id, members=rest, leader=leader)


def remove_team(tx: Transaction, team_id: str) -> None:
    """Remove a team and pause its schedules; its agents and its room's history are kept."""
    get_team(tx, team_id)
    pause_orphans(tx, f"the team {team_id} was removed", team_id=team_id)
    disband_team(tx, team_id)


def select_agents(tx: Transaction, named: Collection[str], provider: str | None) -> list[Agent]:
    """The named agents, or all agents of this provider, by id."""
    if provider is None:
        return [get_agent(tx, each) for each in sorted(set(named))]
    return [each for each in list_agents(tx) if each.provider == provider]


def plan_switches(
    agents: Sequence[Agent], provider: str | None, model: str | None
) -> list[ProviderSwitch]:
    """The necessary changes; agents that need none are left out.

    Providers have different models: with a new provider and no model, its default applies.
    """
    found = [_plan_switch(each, provider or each.provider, model) for each in agents]
    return [each for each in found if each.is_change]


def apply_switches(tx: Transaction, switches: Sequence[ProviderSwitch]) -> list[str]:
    """Apply the switches, and return the agents that are resumed.

    An agent whose provider changes starts a new session.
    """
    resumed = []
    for each in switches:
        paused = is_paused_by_failure(tx, each.agent)
        change = AgentChange()
        if each.provider != each.old_provider:
            change["provider"] = each.provider
        if each.model != each.old_model:
            change["model"] = each.model
        change_agent(tx, each.agent, **change)
        if paused and not is_paused_by_failure(tx, each.agent):
            resumed.append(each.agent)
    return resumed


def _plan_switch(agent: Agent, provider: str, model: str | None) -> ProviderSwitch:
    kept = agent.model if provider == agent.provider else ""
    return ProviderSwitch(
        agent=agent.id,
        old_provider=agent.provider,
        old_model=agent.model,
        provider=provider,
        model=kept if model is None else model,
    )


def _check_agent(tx: Transaction, agent: Agent) -> None:
    check_display_name(agent.name, tx.settings.message_bytes)
    check_model(agent.model, tx.settings.message_bytes)
    for text in (agent.provider, agent.system_prompt, agent.directory):
        check_text(text, tx.settings.message_bytes, "a field of the agent")
    if not agent.provider:
        raise BadName(
            "the provider is missing", hint="Run `bullpen provider list` to see all providers."
        )
    if agent.directory and not PurePath(agent.directory).is_absolute():
        raise BadName(
            f"the directory {agent.directory!r} is not absolute",
            hint="Use a path that begins with /.",
        )


def _is_team(tx: Transaction, name: str) -> bool:
    return tx.one(FIND_TEAM_ID, {"name": name}) is not None


def _values(agent: Agent) -> dict[str, object]:
    enums = ("permission", "context", "scheduling", "reach", "sandbox")
    fields = asdict(agent)
    return {**fields, **{name: str(fields[name]) for name in enums}}


def _update(tx: Transaction, agent: Agent) -> None:
    values = _values(agent)
    del values["id"], values["resets"]
    tx.write(UPDATE_AGENT, {**values, "agent": agent.id, "now": tx.now})


def _update_lane(tx: Transaction, agent: Agent) -> None:
    """Record in its lane whether processors or outside workers claim from it."""
    tx.write(SET_OUTSIDE, {"lane": agent.id, "outside": agent.provider == HTTP})
    refresh_lane(tx, agent.id, 0)


def _reset_sessions(tx: Transaction, agent_id: str) -> None:
    # The first statement waits for a run that is saving its session; the second deletes it.
    tx.write(COUNT_RESET, {"agent": agent_id, "now": tx.now})
    tx.write(DELETE_SESSIONS, {"agent": agent_id})


def _cancel_all(tx: Transaction, agent_id: str, reason: str) -> None:
    running = tx.one(FIND_RUNNING_BATCH, {"agent": agent_id})
    if running is not None and running[0] is not None:
        _cancel(tx, decode_numbers(running[0])[0], reason)
    for statement in SELECT_OLDEST:
        for (message,) in tx.all(statement, {"agent": agent_id, "count": NO_LIMIT}):
            _cancel(tx, message, reason)


def _cancel(tx: Transaction, message: int, reason: str) -> None:
    name = tx.one(FIND_MESSAGE_ID, {"message": message})
    assert name is not None
    cancel(tx, name[0], reason)
