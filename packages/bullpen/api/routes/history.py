"""History: what was said to agents and by them, and who said it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from typing import Annotated

from flask import Response
from pydantic import BaseModel, Field, RootModel

from bullpen.api.context import api, caller, reach, read
from bullpen.api.models import MOST, Page, listed
from bullpen.api.route import blueprint, route
from bullpen.core.access.key import Scope
from bullpen.core.history.said import history_since, newest_history
from bullpen.core.history.search import HistoryEntry, list_people, search_history
from bullpen.core.models import AGENT_MESSAGES
from bullpen.core.store.settled import committed_up_to

ROUTES = blueprint("history", "What was said, and by whom.")

Name = Annotated[str, Field(max_length=200)]


class SpokenAnswer(BaseModel):
    """One thing that was said."""

    id: int
    agent_id: str
    role: str = Field(description="`user` said it to the agent, `assistant` is the agent")
    channel: str
    sender: str
    message_id: str
    content: str
    created_at: int


class SpokenList(RootModel[list[SpokenAnswer]]):
    """What was said."""


class AgentPath(BaseModel):
    """Which agent."""

    agent_id: str = Field(max_length=200, description="the agent's id, of one that is gone as well")


class SearchQuery(BaseModel):
    """What to look for."""

    text: str = Field(min_length=1, max_length=200, description="whatever its case")
    agent: Name | None = Field(None, description="only what was said to this one, or by it")
    limit: int = Field(20, ge=1, le=MOST, description="how many at the most")


class PersonAnswer(BaseModel):
    """Somebody who wrote, and where."""

    channel: str
    sender: str
    sender_id: str | None


class PersonList(RootModel[list[PersonAnswer]]):
    """People."""


@route(ROUTES, "GET", "/api/agents/<agent_id>/messages", scope=Scope.READ, answer=SpokenList)
def of_agent(path: AgentPath, query: Page) -> Response:
    """Read what was said to an agent and by it.

    The newest first; with `since_id` what came after it, the oldest first. What was said to an
    agent stays when it is removed.
    """
    reach(path.agent_id)
    return _said([path.agent_id], query)


@route(ROUTES, "GET", "/api/agent-messages", scope=Scope.READ, answer=SpokenList)
def of_all(query: Page) -> Response:
    """Read what was said to all agents, and by them.

    The newest first; with `since_id` what came after it, the oldest first.
    """
    return _said(caller().agents, query)


@route(ROUTES, "GET", "/api/history/search", scope=Scope.READ, answer=SpokenList)
def search(query: SearchQuery) -> SpokenList:
    """Find where a text occurs, the newest first."""
    reach(query.agent)
    with read() as tx:
        return _shown(search_history(tx, query.text, query.agent, query.limit))


@route(ROUTES, "GET", "/api/people", scope=Scope.READ, answer=PersonList)
def people() -> PersonList:
    """List who wrote, on which channel and under which id."""
    reach(None)
    with read() as tx:
        found = list_people(tx)
    return PersonList([PersonAnswer.model_validate(asdict(each)) for each in found])


def _said(agents: Collection[str] | None, query: Page) -> Response:
    if query.since_id is None:
        with read() as tx:
            found = newest_history(tx, agents, query.limit)
    else:
        upto = committed_up_to(api().store, AGENT_MESSAGES)
        with read() as tx:
            found = history_since(tx, agents, query.since_id, upto, query.limit)
    return listed(_shown(found), [each.id for each in found], query)


def _shown(found: list[HistoryEntry]) -> SpokenList:
    return SpokenList([SpokenAnswer.model_validate(asdict(each)) for each in found])
