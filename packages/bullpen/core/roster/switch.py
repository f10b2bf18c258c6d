"""Agents are given another provider or model, one of them or all of a kind."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from bullpen.core.roster.agent import Agent, AgentChange
from bullpen.core.roster.agents import change_agent
from bullpen.core.roster.find import get_agent, list_agents
from bullpen.core.store.transaction import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSwitch:
    """One agent's provider and model, as they were and as they are to be."""

    agent: str
    old_provider: str
    old_model: str
    provider: str
    model: str
    """Empty is the provider's own choice."""

    @property
    def is_change(self) -> bool:
        """Whether anything is another."""
        return (self.old_provider, self.old_model) != (self.provider, self.model)


def select_agents(tx: Transaction, named: Collection[str], provider: str | None) -> list[Agent]:
    """The agents that are named, or all that this provider answers for, by id."""
    if provider is None:
        return [get_agent(tx, each) for each in sorted(set(named))]
    return [each for each in list_agents(tx) if each.provider == provider]


def plan_switches(
    agents: Sequence[Agent], provider: str | None, model: str | None
) -> list[ProviderSwitch]:
    """What would be another; agents that have it already are left out.

    Another provider knows other models: without a name it is the provider's own choice.
    """
    found = [_plan_switch(each, provider or each.provider, model) for each in agents]
    return [each for each in found if each.is_change]


def apply_switches(tx: Transaction, switches: Sequence[ProviderSwitch]) -> None:
    """Do it; whose provider changes begins a new session."""
    for each in switches:
        change = AgentChange()
        if each.provider != each.old_provider:
            change["provider"] = each.provider
        if each.model != each.old_model:
            change["model"] = each.model
        change_agent(tx, each.agent, **change)


def _plan_switch(agent: Agent, provider: str, model: str | None) -> ProviderSwitch:
    kept = agent.model if provider == agent.provider else ""
    return ProviderSwitch(
        agent=agent.id,
        old_provider=agent.provider,
        old_model=agent.model,
        provider=provider,
        model=kept if model is None else model,
    )
