"""The directories of an agent: only from below them its files leave."""

from __future__ import annotations

from pathlib import Path

from bullpen.core.roster.agent import Agent
from bullpen.core.settings import Settings


def home_of(settings: Settings, agent_id: str) -> Path:
    """The agent's own directory in the workspace."""
    return settings.workspace / agent_id


def roots(settings: Settings, agent: Agent) -> tuple[Path, ...]:
    """Where it works, its own directory, and that of people's files."""
    home = home_of(settings, agent.id)
    own = Path(agent.directory) if agent.directory else home
    return (own, home, settings.files)
