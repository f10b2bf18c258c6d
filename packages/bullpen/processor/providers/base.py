"""What a provider is: the protocol, what a run is given, and what it returns."""

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
"""Shows what the run is doing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What an agent answers in one run, and with what."""

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
    run: str = ""
    """The run's token; empty if it is not of a claim, so that its commands are refused."""


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
        """Answer the request; None if `stop` was set before there was an answer."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramDirectory:
    """A directory of a program's own, with its login, its settings and its sessions."""

    variable: str
    """The variable that names another directory."""
    default: str
    """Its path below the user's home without that variable."""
    below: str = ""
    """Its path below what the variable, or else the default, names."""
    login: tuple[str, ...] = ()
    """The files that the program changes itself when it renews its login."""
    settings: tuple[str, ...] = ()
    """The files that it only reads."""

    def path(self, environ: Mapping[str, str]) -> Path:
        """Where it is for a program with this environment."""
        home = Path(environ.get("HOME") or Path.home())
        return Path(environ.get(self.variable) or home / self.default, self.below)


@dataclass(frozen=True, slots=True)
class CliCommand:
    """A program with its arguments, the variables added to its environment, and its input."""

    argv: tuple[str, ...]
    environ: dict[str, str]
    stdin: str
    hidden_env: tuple[str, ...] = ()
    """Variables of the program that this run does not get: they would sign it in otherwise."""
    directories: tuple[ProgramDirectory, ...] = ()
    """The directories of the program's own."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Files by name, which are in the first of these directories while the run lasts."""


@dataclass(frozen=True, slots=True)
class SessionGone:
    """The session of the request does not exist any more."""

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
    """How one command line is started and read."""

    @property
    def env_patterns(self) -> tuple[str, ...]:
        """The variables that it gets besides the common ones; `X_*` is all with this prefix."""
        ...

    def command(self, request: RunRequest, system_file: Path) -> CliCommand:
        """The command for this request; the file holds the system prompt."""
        ...

    def reader(self, request: RunRequest) -> OutputReader:
        """A reader for the output of this request's run."""
        ...
