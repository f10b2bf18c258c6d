"""What answers: a turn goes in, a reply or a failure comes out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bullpen.core.outcome import NO_USAGE, Failure, Usage
from bullpen.core.roster.agent import Agent
from bullpen.core.roster.custom_providers import CustomProvider
from bullpen.core.roster.sessions import Session
from bullpen.processor.children.stop import Stop

Tell = Callable[[str], None]
"""Takes what the run is doing, for whoever watches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What an agent is to answer, and with what."""

    agent: Agent
    texts: tuple[str, ...]
    """Each message as the agent reads it."""
    prompt: str
    """All of them as one text."""
    system: str
    """What the agent is told about itself and its team."""
    home: Path
    """The agent's own directory in the workspace."""
    directory: Path
    """Where it works."""
    session: Session | None = None
    custom: CustomProvider | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came of a turn."""

    text: str
    session: Session | None = None
    usage: Usage = field(default=NO_USAGE)
    lost: str | None = None
    """Why the session that was to be resumed is gone, if it is."""


class Provider(Protocol):
    """One way to answer."""

    def run(self, turn: Turn, stop: Stop, tell: Tell) -> Reply | Failure | None:
        """Answer; None if it was stopped before it had an answer."""
        ...
