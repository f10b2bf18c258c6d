"""The command of a provider in its agent's sandbox: what it sees, and where its files lie."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bullpen.core.roster.agents import Permission, Sandbox
from bullpen.core.roster.programs import BUBBLEWRAP
from bullpen.core.settings import Settings
from bullpen.processor.children.sandbox import (
    PrivateDirectory,
    View,
    bubblewrap,
)
from bullpen.processor.providers.base import CliCommand, RunRequest

BUBBLEWRAP_PROCESSES = 2
"""Processes of bubblewrap's, one below the other, above the program in its sandbox."""
HINT = "To let its runs go on without one: bullpen agent set {agent} --sandbox none"


@dataclass(frozen=True, slots=True)
class PreparedCommand:
    """How a command is started."""

    argv: list[str]
    environ: dict[str, str]
    files: Path | None
    """Where the command's files belong."""
    wrappers: int = 0
    """How many processes stand above the program."""


def prepare(
    command: CliCommand,
    environ: dict[str, str],
    request: RunRequest,
    settings: Settings,
    system_file: Path,
) -> PreparedCommand:
    """The command as its agent's sandbox has it; raises SandboxError if that cannot be set up."""
    home = settings.home.absolute()
    private = list(_private_directories(command, environ, home / "sandbox" / request.agent.id))
    if request.agent.sandbox is Sandbox.NONE:
        return PreparedCommand(list(command.argv), environ, private[0].place if private else None)
    # Bullpen's command would find no database.
    here = str(Path(sys.executable).parent)
    path = os.pathsep.join(each for each in environ["PATH"].split(os.pathsep) if each != here)
    environ = {**environ, "PATH": path, "TMPDIR": "/tmp"}  # noqa: S108 - the sandbox's own
    directories = tuple(dict.fromkeys((request.home, request.directory)))
    reads = request.agent.permission is Permission.READ
    view = View(
        directory=request.directory,
        writable=() if reads else directories,
        readable=(
            *(directories if reads else ()),
            *_sent_files(request, settings.files.resolve()),
            system_file,
        ),
        private=tuple(private),
        hidden=(Path(environ.get("HOME") or Path.home()), home, settings.workspace.absolute()),
    )
    argv = bubblewrap(command.argv, environ, view)
    return PreparedCommand(
        argv, environ, private[0].source if private else None, BUBBLEWRAP_PROCESSES
    )


def setup_error(request: RunRequest, why: str) -> str:
    """The error of a run whose sandbox cannot be set up."""
    hint = HINT.format(agent=request.agent.id)
    return f"the sandbox of @{request.agent.id} cannot be set up: {why}. {hint}"


def sandbox_complaint(request: RunRequest, errors: str) -> str:
    """What bubblewrap said, if it did not start the program."""
    if request.agent.sandbox is Sandbox.NONE:
        return ""
    first = errors.lstrip().partition("\n")[0]
    return first if first.startswith(f"{BUBBLEWRAP.name}: ") else ""


def _private_directories(
    command: CliCommand, environ: Mapping[str, str], own: Path
) -> Iterator[PrivateDirectory]:
    """The directories of the program's own; each sandboxed agent has others, in the home."""
    for each in command.directories:
        place = each.path(environ)
        yield PrivateDirectory(
            place=place,
            source=own / f"{each.variable.lower()}_{each.below}".rstrip("_"),
            login=tuple(place / name for name in each.login),
            settings=tuple(place / name for name in each.settings),
        )


def _sent_files(request: RunRequest, files: Path) -> Iterator[Path]:
    for path in request.files:
        if path.resolve().is_relative_to(files) and path.is_file():
            yield path
