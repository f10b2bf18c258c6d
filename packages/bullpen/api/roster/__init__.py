"""Agents, teams and providers as clients send and read them."""

from bullpen.api.roster.agents import (
    AgentAnswer,
    AgentBody,
    AgentMap,
    agent_answer,
    agent_map,
    put_agent,
)
from bullpen.api.roster.providers import (
    ProviderAnswer,
    ProviderBody,
    ProviderMap,
    provider_map,
    put_provider,
)
from bullpen.api.roster.teams import TeamAnswer, TeamBody, TeamMap, put_team, reach_all, team_map

__all__ = [
    "AgentAnswer",
    "AgentBody",
    "AgentMap",
    "ProviderAnswer",
    "ProviderBody",
    "ProviderMap",
    "TeamAnswer",
    "TeamBody",
    "TeamMap",
    "agent_answer",
    "agent_map",
    "provider_map",
    "put_agent",
    "put_provider",
    "put_team",
    "reach_all",
    "team_map",
]
