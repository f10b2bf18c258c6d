"""The programs that runs need: whether they are installed, and their versions."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from bullpen.core.registry import PROVIDERS

PROGRAMS = tuple(each.program for each in PROVIDERS.built_in.values() if each.program)
"""The command lines of the built-in providers."""

VERSION_TIMEOUT_SECONDS = 5.0
"""How long a program may take to print its version."""

MAX_VERSION_CHARS = 60

TRIAL_TIMEOUT_SECONDS = 20.0
MAX_REASON_CHARS = 300


@dataclass(frozen=True, slots=True)
class Program:
    """A program on this machine."""

    name: str
    path: str | None
    """None if it is not installed."""
    version: str = ""
    """As it prints it; empty if it printed none or was not started."""


@cache
def all_programs() -> tuple[str, ...]:
    """The command lines of all providers, those of packages included."""
    return (*PROGRAMS, *(each.program for each in PROVIDERS.plugins() if each.program))


def install_command(program: str) -> str:
    """The command that installs this program; empty if its vendor's is not known."""
    known = (each for each in PROVIDERS.built_in.values() if each.program == program)
    return next((each.install for each in known), "")


def find_programs(names: Iterable[str], path: str | None = None) -> dict[str, Program]:
    """Find programs on a PATH, or on that of this process; none of them is started."""
    return {name: Program(name, shutil.which(name, path=path)) for name in names}


def probe_versions(
    names: Iterable[str], path: str | None = None, seconds: float = VERSION_TIMEOUT_SECONDS
) -> dict[str, Program]:
    """Find programs and their versions, with all of them started at the same time."""
    found = find_programs(names, path)
    environ = {**os.environ} if path is None else {**os.environ, "PATH": path}
    asked = {
        each.name: _start(each.path, environ) for each in found.values() if each.path is not None
    }
    deadline = time.monotonic() + seconds
    versions = {name: _version(child, deadline) for name, child in asked.items()}
    return {name: Program(name, each.path, versions.get(name, "")) for name, each in found.items()}


def _start(path: str, environ: Mapping[str, str]) -> subprocess.Popen[bytes] | None:
    try:
        return subprocess.Popen(
            [path, "--version"],
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:  # the file was removed, or cannot be executed
        return None


def _version(child: subprocess.Popen[bytes] | None, deadline: float) -> str:
    if child is None:
        return ""
    with child:
        try:
            out, _ = child.communicate(timeout=max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            return ""
    lines = out.decode(errors="replace").strip().splitlines()
    first = "".join(each for each in lines[0] if each.isprintable()) if lines else ""
    return first[:MAX_VERSION_CHARS] if child.returncode == 0 else ""


class Bubblewrap:
    """The program that creates sandboxes, and whether it works on this machine."""

    name = "bwrap"

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.program = ""
        """Its path, once a trial succeeded."""

    def problem(self) -> str:
        """Why it cannot be used here; empty if it can."""
        with self._lock:
            if self.program:
                return ""
            found = shutil.which(self.name)
            problem = "bubblewrap is not installed" if found is None else _try(found)
            self.program = "" if problem else found or ""
            return problem


BUBBLEWRAP = Bubblewrap()
"""The instance of this process."""


def _try(program: str) -> str:
    argv = [program, "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"]
    try:
        tried = subprocess.run(
            [*argv, "true"], capture_output=True, timeout=TRIAL_TIMEOUT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not work on this machine: {error}"
    if tried.returncode == 0:
        return ""
    said = " ".join(tried.stderr.decode(errors="replace").split())[:MAX_REASON_CHARS]
    return f"bubblewrap does not work on this machine: {said or f'exit status {tried.returncode}'}"
