"""The directories of an agent: only from below them its files leave."""

from __future__ import annotations

from pathlib import Path

from bullpen.core.roster.agent import Agent
from bullpen.core.settings import Settings


def agent_home(settings: Settings, agent_id: str) -> Path:
    """The agent's own directory in the workspace."""
    return settings.workspace / agent_id


def allowed_roots(settings: Settings, agent: Agent) -> tuple[Path, ...]:
    """Where it works, its own directory, and that of people's files."""
    home = agent_home(settings, agent.id)
    own = Path(agent.directory) if agent.directory else home
    return (own, home, settings.files)
