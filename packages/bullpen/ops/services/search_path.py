"""The PATH on which runs find their programs, recorded in the home when the services start.

A program that is installed later is on the PATH of the person's shell, not on that of the services.
`bullpen up`, `restart` and `agent resume` record the shell's PATH when it has the program, and the
processor reads the record before each run: no full restart is needed. A PATH that lacks a program
which the recorded one has, such as that of cron, does not replace it. Services in the foreground,
under systemd or in a container, keep the PATH of their environment.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from bullpen.core.files import is_locked, replace_file
from bullpen.core.roster.programs import all_programs
from bullpen.core.settings import Settings
from bullpen.ops.services import SUPERVISED_VARIABLE, lock_file

FILE = "search_path.json"


@dataclass(frozen=True, slots=True)
class RecordedPath:
    """The PATH of the services."""

    path: str
    foreground: bool = False
    """Whether it is fixed because the services run in the foreground."""


@dataclass(frozen=True, slots=True)
class SearchPath:
    """The PATH of runs, and that of the shell in which a command runs."""

    runs: str
    shell: str
    foreground: bool = False

    def find(self, program: str) -> str | None:
        """The path of a program as runs find it; None if they do not."""
        return shutil.which(program, path=self.runs)

    def only_in_shell(self, programs: Iterable[str]) -> dict[str, str]:
        """The programs that only the shell finds, with their paths."""
        return {
            name: found
            for name in sorted(programs)
            if self.find(name) is None and (found := shutil.which(name, path=self.shell))
        }

    def differences(self, programs: Iterable[str]) -> list[str]:
        """A sentence for each program that only the shell finds, with the remedy."""
        return [self._difference(name, at) for name, at in self.only_in_shell(programs).items()]

    def _difference(self, program: str, at: str) -> str:
        remedy = (
            f"Add {os.path.dirname(at)} to the PATH of the service unit, and restart it."  # noqa: PTH120
            if self.foreground
            else "Next: bullpen restart processor"
        )
        return (
            f"{program} is on this shell's PATH ({at}), but not on the PATH of the services. "
            f"{remedy}"
        )


def search_path(settings: Settings, environ: Mapping[str, str]) -> SearchPath:
    """The PATH of runs: as recorded while the services run, else as `bullpen up` would set it."""
    shell = environ.get("PATH", "")
    recorded = read_recorded_path(settings)
    if recorded is None:
        return SearchPath(shell, shell)
    if is_locked(lock_file(settings, "processor")):
        return SearchPath(recorded.path, shell, recorded.foreground)
    return SearchPath(choose_path(recorded.path, shell), shell)


def run_environment(settings: Settings, environ: Mapping[str, str]) -> Mapping[str, str]:
    """The environment of a processor with the recorded PATH, if the supervisor started it."""
    recorded = read_recorded_path(settings) if SUPERVISED_VARIABLE in environ else None
    return environ if recorded is None else {**environ, "PATH": recorded.path}


def record_at_start(
    settings: Settings, environ: Mapping[str, str], *, foreground: bool
) -> list[str]:
    """Record the PATH of services that are about to start; returns lines about what differs."""
    shell = environ.get("PATH", "")
    if foreground:
        _write(settings, RecordedPath(shell, foreground=True))
        return []
    before = read_recorded_path(settings)
    path = shell if before is None else choose_path(before.path, shell)
    _write(settings, RecordedPath(path))
    return [] if before is None else _describe_kept(before.path, shell)


def record_change(
    settings: Settings, environ: Mapping[str, str], programs: Iterable[str] | None = None
) -> list[str]:
    """Record the shell's PATH for services that run; returns lines about what has changed.

    With `programs`, only if the shell finds one of them and the services do not.
    """
    shell = environ.get("PATH", "")
    before = read_recorded_path(settings)
    if before is None:
        _write(settings, RecordedPath(shell))
        return []
    wanted = all_programs() if programs is None else tuple(programs)
    now = SearchPath(before.path, shell, before.foreground)
    if programs is not None and not now.only_in_shell(wanted):
        return []
    if before.foreground:
        return now.differences(wanted)
    path = choose_path(before.path, shell)
    if path == before.path:
        return _describe_kept(before.path, shell)
    _write(settings, RecordedPath(path))
    gained = SearchPath(before.path, path).only_in_shell(all_programs())
    return [
        *(f"Agents now find {name} on this shell's PATH: {at}" for name, at in gained.items()),
        *_describe_kept(before.path, shell),
    ]


def choose_path(recorded: str, shell: str) -> str:
    """The PATH that finds every program which one of both finds, the shell's if it can."""
    programs = all_programs()
    if not SearchPath(shell, recorded).only_in_shell(programs):
        return shell
    if not SearchPath(recorded, shell).only_in_shell(programs):
        return recorded
    return os.pathsep.join(dict.fromkeys([*recorded.split(os.pathsep), *shell.split(os.pathsep)]))


def read_recorded_path(settings: Settings) -> RecordedPath | None:
    """The recorded PATH; None if there is none."""
    try:
        found = json.loads((settings.run / FILE).read_bytes())
        return RecordedPath(str(found["path"]), bool(found["foreground"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _describe_kept(recorded: str, shell: str) -> list[str]:
    lost = SearchPath(shell, recorded).only_in_shell(all_programs())
    if not lost:
        return []
    names = ", ".join(lost)
    return [f"The services keep their PATH because this shell's PATH lacks {names}."]


def _write(settings: Settings, recorded: RecordedPath) -> None:
    replace_file(settings.run / FILE, json.dumps(asdict(recorded)).encode())
