"""The command of a provider in its agent's sandbox, and the location of its files."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bullpen.core.message import ErrorKind, Failure
from bullpen.core.roster.agents import Permission, Sandbox
from bullpen.core.roster.programs import BUBBLEWRAP
from bullpen.core.settings import Settings
from bullpen.core.workspace.safe_files import Root
from bullpen.processor.children.child import ChildExit, ChildUser
from bullpen.processor.children.sandbox import (
    PrivateDirectory,
    View,
    bubblewrap,
)
from bullpen.processor.providers.base import CliCommand, RunRequest
from bullpen.processor.providers.other_user import (
    account_environment,
    account_of,
    child_user,
    files_place,
    sent_files,
)

BUBBLEWRAP_PROCESSES = 2
"""The number of bubblewrap processes above the program, each the parent of the next."""
HINT = "To run without a sandbox: bullpen agent set {agent} --sandbox none"
USER_HINT = (
    "To use bubblewrap, which needs no root: bullpen agent set {agent} --sandbox bubblewrap. To "
    "use an account, run Bullpen as root, and: bullpen config set sandbox_user ACCOUNT"
)


@dataclass(frozen=True, slots=True)
class PreparedCommand:
    """How a command is started."""

    argv: list[str]
    environ: dict[str, str]
    files: Root | None
    """The directory of the command's files."""
    wrappers: int = 0
    """The number of processes above the program."""
    user: ChildUser | None = None
    """The user of the program, if it is not that of the processor."""


def prepare(
    command: CliCommand,
    environ: dict[str, str],
    request: RunRequest,
    settings: Settings,
    system_file: Path,
) -> PreparedCommand:
    """The command in its agent's sandbox; raises SandboxError if that cannot be set up."""
    if request.agent.sandbox is Sandbox.USER:
        return _prepare_user(command, environ, request, settings, system_file)
    home = settings.home.absolute()
    private = list(_private_directories(command, environ, home / "sandbox" / request.agent.id))
    if request.agent.sandbox is Sandbox.NONE:
        place = Root(private[0].place) if private else None
        return PreparedCommand(list(command.argv), environ, place)
    # `bullpen` would find no database.
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
            *sent_files(request, settings.files.resolve()),
            system_file,
        ),
        private=tuple(private),
        hidden=(Path(environ.get("HOME") or Path.home()), home, settings.workspace.absolute()),
    )
    argv = bubblewrap(command.argv, environ, view)
    place = Root(private[0].source) if private else None
    return PreparedCommand(argv, environ, place, BUBBLEWRAP_PROCESSES)


def _prepare_user(
    command: CliCommand,
    environ: Mapping[str, str],
    request: RunRequest,
    settings: Settings,
    system_file: Path,
) -> PreparedCommand:
    account = account_of(request, settings)
    return PreparedCommand(
        list(command.argv),
        account_environment(command, environ, account),
        files_place(command, account),
        user=child_user(account, request, system_file),
    )


def setup_error(request: RunRequest, why: str) -> str:
    """The error of a run without a working sandbox."""
    hint = USER_HINT if request.agent.sandbox is Sandbox.USER else HINT
    hint = hint.format(agent=request.agent.id)
    return f"the sandbox of @{request.agent.id} cannot be set up: {why}. {hint}"


def no_user_failure(request: RunRequest, end: ChildExit) -> Failure:
    """The failure of a run that could not change its user, or whose user cannot use its files."""
    reason = errno.errorcode.get(end.code, str(end.code))
    why = (
        f"its account cannot be used, or cannot read {request.home} or {request.directory}"
        f" ({reason}); run chmod o+x on their parent directories"
    )
    return Failure(kind=ErrorKind.SETUP, error=setup_error(request, why))


def sandbox_complaint(request: RunRequest, errors: str) -> str:
    """The error of bubblewrap, if it did not start the program."""
    if request.agent.sandbox is not Sandbox.BUBBLEWRAP:
        return ""
    first = errors.lstrip().partition("\n")[0]
    return first if first.startswith(f"{BUBBLEWRAP.name}: ") else ""


def _private_directories(
    command: CliCommand, environ: Mapping[str, str], own: Path
) -> Iterator[PrivateDirectory]:
    """The private directories of the program; each sandboxed agent has its own, in the home."""
    for each in command.directories:
        place = each.path(environ)
        yield PrivateDirectory(
            place=place,
            source=own / f"{each.variable.lower()}_{each.below}".rstrip("_"),
            login=tuple(place / name for name in each.login),
            settings=tuple(place / name for name in each.settings),
        )
