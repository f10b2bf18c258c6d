"""The installation under examination: settings, database and processes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TypeVar

import psutil

from bullpen.core.errors import BullpenError, StoreError, StoreUnavailable
from bullpen.core.roster.providers import list_custom_providers
from bullpen.core.settings import DEFAULTS, ENVIRONMENT_PREFIX, Settings
from bullpen.core.settings.parse import SettingProblem
from bullpen.core.store import open
from bullpen.core.store.base import Store
from bullpen.core.store.open import database_file, open_store
from bullpen.core.text import MIN_SECRET_CHARS
from bullpen.ops.services.programs import RENAMED_SERVICES
from bullpen.ops.services.supervisor import OWN_SERVICES, Service, Supervisor

Result = TypeVar("Result")


def run_with_timeout(seconds: float, function: Callable[[], Result]) -> Result | None:
    """The result of a function; None if it raises, or does not return in time."""
    results: list[Result] = []
    # A daemon, because a thread that hangs cannot be ended.
    work = threading.Thread(target=lambda: results.append(function()), daemon=True)
    work.start()
    work.join(seconds)
    return results[0] if results else None


SUPERVISORS = frozenset({"bullpen.ops.services.supervisord", "supervisor.supervisord"})
"""The supervisor's module, now and in earlier versions."""


@dataclass(frozen=True, slots=True)
class Process:
    """One process. Its arguments may contain secrets: never show them."""

    pid: int
    parent: int
    name: str
    arguments: tuple[str, ...]
    ours: bool
    """Whether it belongs to the home under examination."""
    in_run: bool
    """Whether an agent's run started it."""

    @property
    def service(self) -> str | None:
        """The service's name if it is one: `bullpen run NAME`, `bullpen run channel NAME`."""
        for before, after in zip(self.arguments, self.arguments[1:], strict=False):
            name = RENAMED_SERVICES.get(after, after)
            if before == "run" and name in OWN_SERVICES:
                return name
            if before == "channel" and "run" in self.arguments:
                return after
        return None

    @property
    def is_supervisor(self) -> bool:
        """Whether it is a supervisor."""
        return not SUPERVISORS.isdisjoint(self.arguments)

    def __str__(self) -> str:
        return f"{self.name} (process {self.pid})"


def list_processes(home: Path) -> tuple[Process, ...]:
    """The processes of this machine; those of other users have no environment."""
    found = []
    for each in psutil.process_iter():
        try:
            with each.oneshot():
                if each.pid == os.getpid() or each.status() == psutil.STATUS_ZOMBIE:
                    continue
                name, parent, arguments = each.name(), each.ppid(), tuple(each.cmdline())
                environ = _environ(each)
        except (psutil.Error, OSError):  # ended meanwhile
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
    """The home that a process with this environment uses."""
    named = environ.get(f"{ENVIRONMENT_PREFIX}HOME")
    if named:
        return named
    own = environ.get("HOME")
    return str(DEFAULTS["home"]).replace("~", own, 1) if own else ""


OPEN_SECONDS = 2.0
ANSWER_SECONDS = 1.5

AskProvider = Callable[[str, str], str]
"""Calls a provider and model with a one-word prompt; returns the error, or an empty text."""


@dataclass(frozen=True, slots=True)
class Database:
    """The database, open or with the error that it gave."""

    file: Path | None
    """None on PostgreSQL."""
    missing: bool = False
    """Whether the file does not exist."""
    store: Store | None = None
    """None if the connection failed."""
    revision: str | None = None
    error: BullpenError | None = None

    @property
    def current(self) -> bool:
        """Whether it has this version's schema."""
        return self.store is not None and self.revision == open.HEAD_REVISION

    def close(self) -> None:
        """Close the store if it is open."""
        if self.store is not None:
            self.store.close()


def open_database(settings: Settings) -> Database:
    """Open the database if there is one; an error is part of the result."""
    found = run_with_timeout(OPEN_SECONDS, partial(_open, settings))
    if found is not None:
        return found
    error = StoreUnavailable(f"the database did not answer within {OPEN_SECONDS:g} s")
    return Database(None, error=error)


def _open(settings: Settings) -> Database:
    try:
        file = database_file(settings)
        if file is not None and not file.exists():
            return Database(file, missing=True)
        store = open_store(settings, check=False)
    except BullpenError as error:
        return Database(None, error=error)
    try:
        return Database(file, store=store, revision=store.revision())
    except BullpenError as error:
        store.close()
        return Database(file, error=error)
    except Exception as error:  # the other checks still run
        store.close()
        return Database(file, error=StoreError(f"{type(error).__name__}: {error}"))


@dataclass(frozen=True)
class Installation:
    """The installation that the checks examine."""

    settings: Settings
    environ: Mapping[str, str]
    now: int
    database: Database
    problems: tuple[SettingProblem, ...] = ()
    deep: bool = False
    ask: AskProvider | None = field(default=None, repr=False)

    @property
    def home(self) -> Path:
        """The home directory."""
        return self.settings.home

    @property
    def store(self) -> Store:
        """The open store, for checks that need the database."""
        assert self.database.store is not None
        return self.database.store

    @cached_property
    def processes(self) -> tuple[Process, ...]:
        """The processes of this machine."""
        return list_processes(self.home)

    @cached_property
    def services(self) -> tuple[Service, ...] | None:
        """The services as the supervisor sees them; None if no supervisor answers."""
        return run_with_timeout(ANSWER_SECONDS, partial(_services, self.settings))

    @cached_property
    def secrets(self) -> tuple[str, ...]:
        """The known secrets, which are masked in findings."""
        found = [*self.settings.secrets(), *_words_of_file(self.settings.token_file)]
        if self.database.current:
            try:
                with self.store.read() as tx:
                    found += [each.api_key for each in list_custom_providers(tx)]
            except BullpenError:
                pass  # the checks of the database report it
        return tuple({each for each in found if len(each) >= MIN_SECRET_CHARS})


def _services(settings: Settings) -> tuple[Service, ...] | None:
    supervisor = Supervisor(settings)
    try:
        return tuple(supervisor.services()) if supervisor.alive() else None
    except BullpenError:
        return None


def _words_of_file(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError):
        return []
