"""/api/agents: list, add, change and remove agents, their workspaces and sessions."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath
from typing import Annotated

from flask import request
from pydantic import BaseModel, Field, RootModel

from bullpen.api.context import (
    ChangedBy,
    api,
    caller,
    read,
    require_changes,
    require_reach,
    write,
)
from bullpen.api.route import ADMIN, READ, Routes
from bullpen.api.schemas import (
    Answer,
    Done,
    LenientBody,
    LongText,
    Number,
    ShortText,
    only_changes,
)
from bullpen.core.clock import SECOND
from bullpen.core.company import add_agent, change_agent, remove_agent, reset_agent
from bullpen.core.errors import BadRequest, Conflict, LaneBusy, LaneError, NameTaken, NotFound
from bullpen.core.heartbeats.manage import HeartbeatChange, change_heartbeat, get_heartbeat
from bullpen.core.heartbeats.model import HeartbeatState
from bullpen.core.inspect.lanes import LaneRecord, get_lane, list_lanes
from bullpen.core.queue.lanes import create_lane, lock_lane
from bullpen.core.roster.agents import (
    Agent,
    AgentChange,
    Context,
    Permission,
    Reach,
    Sandbox,
    Scheduling,
    find_agent,
    get_agent,
    list_agents,
    load_address_book,
)
from bullpen.core.roster.providers import PROVIDER_ALIASES, resolve_provider_name
from bullpen.core.routing.address import Recipient
from bullpen.core.states import LaneState
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import sanitise_text
from bullpen.core.workspace.templates import prepare_directory

routes = Routes("agents", "Agents and their configuration.")


FOR_ALL = "Only keys that reach all agents may change it."

TINYAGI_NAMES = {command: family for family, command in PROVIDER_ALIASES.items()}
"""TinyAGI's names of our providers."""

CLIENT_HEADER, TINYAGI_CLIENT = "X-Bullpen-Client", "tinyagi"
"""The header that a proxy adds to requests from TinyAGI's clients."""


class HeartbeatSwitch(LenientBody):
    """The agent's heartbeat, in the form of TinyAGI's settings."""

    enabled: bool | None = None
    interval: Number | None = Field(None, description="Seconds between heartbeats; at least 60.")


class AgentBody(LenientBody):
    """A new agent, or the fields of an agent to change."""

    name: ShortText | None = None
    provider: Annotated[
        ShortText | None,
        Field(
            description="A built-in provider, a provider of a plugin, or `custom:<id>`. " + FOR_ALL
        ),
        ChangedBy.ALL_AGENTS,
    ] = None
    model: ShortText | None = Field(None, description="Empty for the provider's default model.")
    working_directory: Annotated[
        LongText | None,
        Field(
            description="The present value, or empty: no change. The directory can only be changed "
            "on the machine itself, with `bullpen agent set`."
        ),
        ChangedBy.MACHINE,
    ] = None
    system_prompt: str | None = None
    prompt_file: LongText | None = Field(
        None, description="Refused: send the text as `system_prompt`."
    )
    permission: Annotated[
        Permission | None,
        Field(description=f"Permission level. {FOR_ALL}"),
        ChangedBy.ALL_AGENTS,
    ] = None
    context: Context | None = None
    scheduling: Annotated[
        Scheduling | None,
        Field(description=f"For which agents it may create schedules. {FOR_ALL}"),
        ChangedBy.ALL_AGENTS,
    ] = None
    heartbeat: HeartbeatSwitch | None = Field(
        None, description="The heartbeat, as in `/api/agents/<id>/heartbeat`."
    )
    reach: Annotated[
        Reach | None,
        Field(
            description="The agents whose data the `bullpen` commands of its runs can read, and "
            f"to which they can write. {FOR_ALL}"
        ),
        ChangedBy.ALL_AGENTS,
    ] = None
    sandbox: Annotated[
        Sandbox | None,
        Field(description=f"Isolation of its runs from the rest of the machine. {FOR_ALL}"),
        ChangedBy.ALL_AGENTS,
    ] = None


FIELDS = {"directory": "working_directory"}
"""The fields of an agent that have another name in a request body."""


class AgentLane(Answer):
    """The counts of an agent's lane."""

    state: LaneState
    reason: str | None
    pending: int
    processing: int


class AgentAnswer(Answer):
    """An agent."""

    name: str
    provider: str
    model: str
    working_directory: str
    system_prompt: str
    permission: Permission
    context: Context
    scheduling: Scheduling
    reach: Reach
    sandbox: Sandbox
    lane: AgentLane


class AgentMap(RootModel[dict[str, AgentAnswer]]):
    """Agents by their ids."""


class AgentPath(BaseModel):
    """Selects an agent."""

    agent_id: str = Field(description="The agent's id.")


class Removal(BaseModel):
    """Options of the removal."""

    force: bool = Field(False, description="Cancel the agent's open messages.")


class AgentDone(Done):
    """The agent after the change."""

    agent: AgentAnswer
    provisioned: bool = Field(description="Whether files were created in its directory.")


@routes.get("/api/agents", READ)
def agents() -> AgentMap:
    """List agents by id, each with its lane."""
    with read() as tx:
        return agent_map(tx)


@routes.get("/api/agents/<agent_id>", READ, NotFound)
def agent(path: AgentPath) -> AgentAnswer:
    """Get an agent."""
    require_reach(path.agent_id)
    with read() as tx:
        return agent_answer(tx, get_agent(tx, path.agent_id))


@routes.put("/api/agents/<agent_id>", ADMIN, NameTaken, LaneError)
def put(path: AgentPath, body: AgentBody) -> AgentDone:
    """Create or change an agent.

    A new agent requires a name and a provider. For an existing agent, omitted fields are unchanged.
    """
    return _put(path.agent_id, body, create=True)


@routes.patch("/api/agents/<agent_id>", ADMIN, NotFound, LaneError)
def change(path: AgentPath, body: AgentBody) -> AgentDone:
    """Change an agent; omitted fields are unchanged."""
    return _put(path.agent_id, body, create=False)


@routes.delete("/api/agents/<agent_id>", ADMIN, NotFound, Conflict, LaneError)
def remove(path: AgentPath, query: Removal) -> Done:
    """Remove an agent, also from its teams.

    Its history and its files are kept.
    """
    require_reach(path.agent_id)
    with write() as tx:
        try:
            remove_agent(tx, path.agent_id, force=query.force)
        except LaneBusy as error:
            hint = "Wait until its messages are completed, or cancel them with `?force=true`."
            raise LaneBusy(str(error), hint=hint) from None
    return Done()


@routes.post("/api/agents/<agent_id>/reset", ADMIN, NotFound)
def reset(path: AgentPath) -> Done:
    """Reset an agent's sessions.

    Its next run starts a new session with the provider.
    """
    require_reach(path.agent_id)
    with write() as tx:
        reset_agent(tx, path.agent_id)
    return Done()


def agent_map(tx: Transaction) -> AgentMap:
    """Return the agents that the caller reaches."""
    lanes = {lane.agent: lane for lane in list_lanes(tx)}
    agents = (each for each in list_agents(tx) if caller().can_reach(each.id))
    return AgentMap({each.id: _agent_answer(tx, each, lanes[each.id]) for each in agents})


def agent_answer(tx: Transaction, agent: Agent) -> AgentAnswer:
    """One agent with its lane."""
    return _agent_answer(tx, agent, get_lane(tx, agent.id))


def put_agent(tx: Transaction, agent_id: str, body: AgentBody, *, create: bool = True) -> Agent:
    """Add this agent, or change the given fields; prepare its directory afterwards."""
    require_reach(agent_id)
    if body.prompt_file:
        raise BadRequest(
            "prompt_file is not supported over the API", hint="Send the text as `system_prompt`."
        )
    if create:
        # A concurrent request that adds the same agent waits here, and then finds the agent.
        create_lane(tx, agent_id)
        lock_lane(tx, agent_id)
    change = _agent_change(tx, agent_id, body)
    before = find_agent(tx, agent_id) if create else get_agent(tx, agent_id)
    news = only_changes(change, before or Agent(id=agent_id))
    require_changes(AgentBody, [FIELDS.get(name, name) for name in news])
    names = [news["name"]] if "name" in news else []
    require_own_names(tx, names if before else [agent_id, *names], agent=agent_id)
    if before is None:
        if body.name is None or body.provider is None:
            raise BadRequest(
                "a new agent requires a name and a provider", hint="Send `name` and `provider`."
            )
        add_agent(tx, Agent(id=agent_id, **change))
    elif news:
        change_agent(tx, agent_id, **news)
    if body.heartbeat is not None:
        _switch_heartbeat(tx, agent_id, body.heartbeat)
    return get_agent(tx, agent_id)


def require_own_names(
    tx: Transaction, names: Iterable[str], *, agent: str | None = None, team: str | None = None
) -> None:
    """Refuse names of other agents and teams to a key that does not reach all agents.

    An agent with such a name would receive their messages.
    """
    if caller().can_reach(None):
        return
    book = load_address_book(tx)
    for name in names:
        found = book.find(name)
        mine = found is None or (
            found.team == team if team else found == Recipient(agent or "", None)
        )
        if not mine or book.find_team(name) not in (None, team):
            raise NameTaken(f"{name[:40]!r} is the name of another agent or team")


def _switch_heartbeat(tx: Transaction, agent_id: str, switch: HeartbeatSwitch) -> None:
    change = HeartbeatChange()
    before = get_heartbeat(tx, agent_id)
    if switch.enabled not in (None, before.state is HeartbeatState.ON):
        change["on"] = switch.enabled is True
    if switch.interval not in (None, before.every // SECOND):
        change["every"] = (switch.interval or 0) * SECOND
    if change:
        change_heartbeat(tx, agent_id, **change)


def _put(agent_id: str, body: AgentBody, *, create: bool) -> AgentDone:
    with write() as tx:
        answer = agent_answer(tx, put_agent(tx, agent_id, body, create=create))
    return AgentDone(agent=answer, provisioned=prepare_directory(api().settings, agent_id))


def _agent_answer(tx: Transaction, agent: Agent, lane: LaneRecord) -> AgentAnswer:
    own_directory = sanitise_text(str(tx.settings.workspace / agent.id))
    return AgentAnswer.from_row(
        agent,
        provider=shown_provider(agent.provider),
        working_directory=agent.directory or own_directory,
        lane=lane,
    )


def shown_provider(provider: str) -> str:
    """Return the provider's name; for TinyAGI's clients, the name that their forms use."""
    if request.headers.get(CLIENT_HEADER) == TINYAGI_CLIENT:
        return TINYAGI_NAMES.get(provider, provider)
    return provider


def _agent_change(tx: Transaction, agent_id: str, body: AgentBody) -> AgentChange:
    change = AgentChange()
    if body.name is not None:
        change["name"] = body.name
    if body.provider is not None:
        change["provider"] = resolve_provider_name(tx, body.provider)
    if body.model is not None:
        change["model"] = body.model
    if body.working_directory:
        own = PurePath(body.working_directory) == PurePath(tx.settings.workspace / agent_id)
        change["directory"] = "" if own else body.working_directory
    if body.system_prompt is not None:
        change["system_prompt"] = body.system_prompt
    if body.permission is not None:
        change["permission"] = body.permission
    if body.context is not None:
        change["context"] = body.context
    if body.scheduling is not None:
        change["scheduling"] = body.scheduling
    _add_bounds(change, body)
    return change


def _add_bounds(change: AgentChange, body: AgentBody) -> None:
    if body.reach is not None:
        change["reach"] = body.reach
    if body.sandbox is not None:
        change["sandbox"] = body.sandbox
