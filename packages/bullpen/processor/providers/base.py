"""What a provider is: the protocol, and what it is told of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bullpen.core.message import NO_USAGE, Failure, Usage
from bullpen.core.roster.agents import Agent
from bullpen.core.roster.providers import CustomProvider
from bullpen.core.roster.sessions import Session
from bullpen.processor.children.child import ChildExit, Stop

ReportProgress = Callable[[str], None]
"""Takes what the run is doing, for whoever watches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
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

    def run(self, turn: RunRequest, stop: Stop, tell: ReportProgress) -> Reply | Failure | None:
        """Answer; None if it was stopped before it had an answer."""
        ...


@dataclass(frozen=True, slots=True)
class CliCommand:
    """A program with its arguments, what is added to its environment, and what it reads."""

    argv: tuple[str, ...]
    environ: dict[str, str]
    stdin: str
    hides: tuple[str, ...] = ()
    """What of the harness's variables this run may not see: they speak for somebody else."""


@dataclass(frozen=True, slots=True)
class SessionGone:
    """The session to be resumed does not exist any more."""

    why: str


class OutputReader(Protocol):
    """Reads what one run prints."""

    def line(self, text: str) -> str | None:
        """Take a line of the output; gives what to tell those who watch."""
        ...

    def close(self, end: ChildExit, errors: str) -> Reply | Failure | SessionGone:
        """The run is over: what came of it."""
        ...


class CliAdapter(Protocol):
    """One command line."""

    @property
    def env_patterns(self) -> tuple[str, ...]:
        """The variables that it may see besides the common ones; `X_*` is all that begin so."""
        ...

    def command(self, turn: RunRequest, system_file: Path) -> CliCommand:
        """How to start it for this turn; the file holds the turn's system prompt."""
        ...

    def reader(self, turn: RunRequest) -> OutputReader:
        """What reads the output of this turn's run."""
        ...
