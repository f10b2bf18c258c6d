"""Agents: who answers, with what, and what each of them has in its directory."""

from __future__ import annotations

from pydantic import BaseModel, Field

from bullpen.api.context import api, reach, read, write
from bullpen.api.models import Done
from bullpen.api.roster.agents import (
    AgentAnswer,
    AgentBody,
    AgentMap,
    agent_answer,
    agent_map,
    put_agent,
)
from bullpen.api.route import blueprint, route
from bullpen.core.access.key import Scope
from bullpen.core.errors import Conflict, LaneBusy, LaneError, NameTaken, NotFound
from bullpen.core.roster.agents import remove_agent, reset_agent
from bullpen.core.roster.find import get_agent
from bullpen.core.workspace.provision import prepare_directory

ROUTES = blueprint("agents", "Who answers: agents, and how each of them works.")


class AgentPath(BaseModel):
    """Which agent."""

    agent_id: str = Field(description="the agent's id")


class Removal(BaseModel):
    """How it is let go."""

    force: bool = Field(False, description="cancel what it still has to do")


class AgentDone(Done):
    """The agent as it is now."""

    agent: AgentAnswer
    provisioned: bool = Field(description="whether anything was put into its directory")


@route(ROUTES, "GET", "/api/agents", scope=Scope.READ, answer=AgentMap)
def agents() -> AgentMap:
    """List the agents by their ids, each with its lane."""
    with read() as tx:
        return agent_map(tx)


@route(
    ROUTES,
    "GET",
    "/api/agents/<agent_id>",
    scope=Scope.READ,
    answer=AgentAnswer,
    errors=(NotFound,),
)
def agent(path: AgentPath) -> AgentAnswer:
    """Show one agent."""
    reach(path.agent_id)
    with read() as tx:
        return agent_answer(tx, get_agent(tx, path.agent_id))


@route(
    ROUTES,
    "PUT",
    "/api/agents/<agent_id>",
    scope=Scope.ADMIN,
    answer=AgentDone,
    errors=(NameTaken, LaneError),
    audited=True,
)
def put(path: AgentPath, body: AgentBody) -> AgentDone:
    """Take on an agent, or change one.

    A new one needs a name and a provider. Of one that exists, what is not sent stays.
    """
    return _put(path.agent_id, body, create=True)


@route(
    ROUTES,
    "PATCH",
    "/api/agents/<agent_id>",
    scope=Scope.ADMIN,
    answer=AgentDone,
    errors=(NotFound, LaneError),
    audited=True,
)
def change(path: AgentPath, body: AgentBody) -> AgentDone:
    """Change an agent that exists; what is not sent stays."""
    return _put(path.agent_id, body, create=False)


@route(
    ROUTES,
    "DELETE",
    "/api/agents/<agent_id>",
    scope=Scope.ADMIN,
    answer=Done,
    errors=(NotFound, Conflict, LaneError),
    audited=True,
)
def remove(path: AgentPath, query: Removal) -> Done:
    """Let an agent go, out of its teams as well. Its history stays, and so do its files."""
    reach(path.agent_id)
    with write() as tx:
        try:
            remove_agent(tx, path.agent_id, force=query.force)
        except LaneBusy as error:
            hint = "Wait until it is through, or cancel all of it with `?force=true`."
            raise LaneBusy(str(error), hint=hint) from None
    return Done()


@route(
    ROUTES,
    "POST",
    "/api/agents/<agent_id>/reset",
    scope=Scope.ADMIN,
    answer=Done,
    errors=(NotFound,),
    audited=True,
)
def reset(path: AgentPath) -> Done:
    """Let an agent forget its sessions: it begins anew with the next message."""
    reach(path.agent_id)
    with write() as tx:
        reset_agent(tx, path.agent_id)
    return Done()


def _put(agent_id: str, body: AgentBody, *, create: bool) -> AgentDone:
    with write() as tx:
        answer = agent_answer(tx, put_agent(tx, agent_id, body, create=create))
    return AgentDone(agent=answer, provisioned=prepare_directory(api().settings, agent_id))
