"""The home that is set up: what is in it, and what is put there."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from bullpen.cli.output import read_transaction, write_transaction
from bullpen.cli.services.prepared import migrate_database
from bullpen.core.roster.agent import Agent
from bullpen.core.roster.custom_providers import CustomProvider, list_custom_providers
from bullpen.core.roster.find import list_agents
from bullpen.core.roster.team import Team
from bullpen.core.roster.teams import list_teams
from bullpen.core.services.directories import make_directories
from bullpen.core.settings import Settings
from bullpen.core.settings_file import SettingsFile
from bullpen.core.settings_problems import load_lenient
from bullpen.core.store.file import database_file
from bullpen.core.store.transaction import Transaction


@dataclass(slots=True)
class SetupHome:
    """One installation, while its owner answers questions."""

    settings: Settings
    tell: Callable[[str], None]
    agents: dict[str, Agent] = field(default_factory=dict)
    teams: dict[str, Team] = field(default_factory=dict)
    services: dict[str, CustomProvider] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    """What was kept of the answers, in words."""
    new_settings: list[str] = field(default_factory=list)
    """The names of settings that have another value now."""

    def look(self) -> None:
        """See what is there; a database that does not exist is not made by looking."""
        file = database_file(self.settings)
        if file is not None and not file.exists():
            return
        # One of an earlier version is brought up to date before anything can be read from it.
        migrate_database(self.settings, self.tell)
        with read_transaction(self.settings) as tx:
            self.agents = {each.id: each for each in list_agents(tx)}
            self.teams = {each.id: each for each in list_teams(tx)}
            self.services = {each.id: each for each in list_custom_providers(tx)}

    def keep(self, what: str, change: Callable[[Transaction], object]) -> None:
        """Keep an answer in the database, which is made if it is not there."""
        with defer_interrupts():
            make_directories(self.settings)
            migrate_database(self.settings, self.tell)
            with write_transaction(self.settings) as tx:
                change(tx)
            self.changed.append(what)
        self.look()

    def save_settings(self, what: str, changes: Mapping[str, str | None]) -> None:
        """Keep an answer in settings.toml; the file as it was is beside it."""
        file = SettingsFile(self.settings.home, {}, here=True)
        with defer_interrupts(), file.locked():
            wanted = file.check(changes)
            file.write(wanted)
            if wanted:
                self.changed.append(what)
                self.new_settings += wanted
        self.settings, _ = load_lenient(os.environ)


@contextmanager
def defer_interrupts() -> Iterator[None]:
    """Let Ctrl-C wait until the end of this block: what is kept is kept whole."""
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if heard:
        raise KeyboardInterrupt
