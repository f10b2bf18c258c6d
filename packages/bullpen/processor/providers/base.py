"""The protocol of providers, the request of a run, and its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bullpen.core.message import NO_USAGE, Failure, Usage
from bullpen.core.roster.agents import Agent
from bullpen.core.roster.providers import CustomProvider
from bullpen.core.roster.sessions import Session
from bullpen.processor.children.child import ChildExit, Stop

ReportProgress = Callable[[str], None]
"""Reports the progress of a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """The input of one run."""

    agent: Agent
    texts: tuple[str, ...]
    """The messages, as the agent reads them."""
    prompt: str
    """All messages in one text."""
    system: str
    """The system prompt: about the agent, its team, its skills and its memory."""
    home: Path
    """The agent's own directory in the workspace."""
    directory: Path
    """The working directory of the run."""
    session: Session | None = None
    custom: CustomProvider | None = None
    files: tuple[Path, ...] = ()
    """The files that were sent with the messages."""
    heartbeat: bool = False
    """Whether this is a heartbeat, to which `HEARTBEAT_OK` is a silent answer."""
    run: str = ""
    """The token of the run; empty if it has no claim, so that its commands are refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The output of a run that succeeded."""

    text: str
    session: Session | None = None
    usage: Usage = field(default=NO_USAGE)
    session_lost: str | None = None
    """Why the session of the request could not be resumed; None if it was."""


class Provider(Protocol):
    """Runs agents."""

    def run(
        self, request: RunRequest, stop: Stop, report: ReportProgress
    ) -> Reply | Failure | None:
        """Answer the request; None if `stop` was set before the answer."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramDirectory:
    """A program's private directory with its login, settings and sessions."""

    variable: str
    """The variable that names another directory."""
    default: str
    """Its path below the user's home without that variable."""
    below: str = ""
    """Its path below the directory of the variable, or below the default."""
    login: tuple[str, ...] = ()
    """The files that the program changes itself when it renews its login."""
    settings: tuple[str, ...] = ()
    """The files that it only reads."""

    def path(self, environ: Mapping[str, str]) -> Path:
        """Its path for a program with this environment."""
        home = Path(environ.get("HOME") or Path.home())
        return Path(environ.get(self.variable) or home / self.default, self.below)


@dataclass(frozen=True, slots=True)
class CliCommand:
    """A program with its arguments, the variables added to its environment, and its input."""

    argv: tuple[str, ...]
    environ: dict[str, str]
    stdin: str
    hidden_env: tuple[str, ...] = ()
    """Variables that this run does not get because they contain another login."""
    directories: tuple[ProgramDirectory, ...] = ()
    """The private directories of the program."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Files by name; they exist in the first of these directories during the run."""


@dataclass(frozen=True, slots=True)
class SessionGone:
    """The session of the request no longer exists."""

    why: str


class OutputReader(Protocol):
    """Reads the output of one run."""

    def line(self, text: str) -> str | None:
        """Read a line of the output; returns the progress to show, if any."""
        ...

    def close(self, end: ChildExit, errors: str) -> Reply | Failure | SessionGone:
        """The result of the run, which has ended."""
        ...


class CliAdapter(Protocol):
    """How a command line is started, and its output read."""

    @property
    def env_patterns(self) -> tuple[str, ...]:
        """The variables that it gets in addition to the common ones; `X_*` matches a prefix."""
        ...

    def command(self, request: RunRequest, system_file: Path) -> CliCommand:
        """The command for this request; the file contains the system prompt."""
        ...

    def reader(self, request: RunRequest) -> OutputReader:
        """A reader for the output of this request's run."""
        ...
