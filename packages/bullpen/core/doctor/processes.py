"""The processes of this machine, as far as they may be looked at."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from bullpen.core.services.supervisor import CORE_SERVICES
from bullpen.core.settings import DEFAULTS, ENVIRONMENT_PREFIX

SUPERVISOR = "supervisor.supervisord"


@dataclass(frozen=True, slots=True)
class Process:
    """One process. What it was called with may hold secrets: it is not to be shown."""

    pid: int
    parent: int
    name: str
    arguments: tuple[str, ...]
    ours: bool
    """Whether it belongs to the home that is examined."""
    in_run: bool
    """Whether a run of an agent started it."""

    @property
    def service(self) -> str | None:
        """Which service it is, if it is one: `bullpen run NAME`."""
        for before, after in zip(self.arguments, self.arguments[1:], strict=False):
            if before == "run" and after in CORE_SERVICES:
                return after
        return None

    @property
    def is_supervisor(self) -> bool:
        """Whether it is a supervisor."""
        return SUPERVISOR in self.arguments

    def __str__(self) -> str:
        return f"{self.name} (process {self.pid})"


def list_processes(home: Path) -> tuple[Process, ...]:
    """All that can be seen; those of other users only in part."""
    found = []
    for each in psutil.process_iter():
        try:
            with each.oneshot():
                if each.pid == os.getpid() or each.status() == psutil.STATUS_ZOMBIE:
                    continue
                name, parent, arguments = each.name(), each.ppid(), tuple(each.cmdline())
                environ = _environ(each)
        except (psutil.Error, OSError):  # it has ended meanwhile
            continue
        ours = _home_of(environ) == str(home)
        found.append(
            Process(
                each.pid, parent, name, arguments, ours, f"{ENVIRONMENT_PREFIX}AGENT" in environ
            )
        )
    return tuple(found)


def _environ(process: psutil.Process) -> Mapping[str, str]:
    try:
        return process.environ()
    except (psutil.Error, OSError):
        return {}


def _home_of(environ: Mapping[str, str]) -> str:
    """Which home its commands would work on."""
    named = environ.get(f"{ENVIRONMENT_PREFIX}HOME")
    if named:
        return named
    own = environ.get("HOME")
    return str(DEFAULTS["home"]).replace("~", own, 1) if own else ""
