"""The answers to the questions of setup: from a person at a terminal, or the defaults."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import click

from bullpen.cli.command import read_transaction, write_transaction
from bullpen.cli.interrupts import defer_interrupts
from bullpen.cli.output import echo
from bullpen.cli.up import migrate_database
from bullpen.core.roster.agents import Agent, list_agents
from bullpen.core.roster.providers import CustomProvider, list_custom_providers
from bullpen.core.roster.teams import Team, list_teams
from bullpen.core.settings import Settings
from bullpen.core.settings.file import SettingsFile
from bullpen.core.settings.parse import load_lenient
from bullpen.core.store.open import database_file
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import visible
from bullpen.ops.services.programs import make_directories


class Prompter(ABC):
    """Answers questions; every question has a default."""

    @abstractmethod
    def say(self, *lines: str) -> None:
        """Print lines about the progress."""

    @abstractmethod
    def choose(self, question: str, choices: Sequence[str], default: str) -> str:
        """One of the choices."""

    @abstractmethod
    def text(self, question: str, default: str = "") -> str:
        """A stripped text; empty without an answer and a default."""

    @abstractmethod
    def secret(self, question: str) -> str:
        """A text that is not echoed; empty without an answer."""

    @abstractmethod
    def yes(self, question: str, *, default: bool = True) -> bool:
        """Yes or no."""

    @property
    @abstractmethod
    def there(self) -> bool:
        """Whether a person answers, who can choose another answer next time."""


class TerminalPrompter(Prompter):
    """A person at a terminal."""

    there = True

    def say(self, *lines: str) -> None:
        """Print lines."""
        for each in lines:
            echo(each)

    def choose(self, question: str, choices: Sequence[str], default: str) -> str:
        """One of the choices; asks again after any other answer."""
        chosen: str = click.prompt(visible(question), type=click.Choice(choices), default=default)
        return chosen

    def text(self, question: str, default: str = "") -> str:
        """The typed text."""
        typed: str = click.prompt(visible(question), default=default, show_default=bool(default))
        return typed.strip()

    def secret(self, question: str) -> str:
        """The typed text, without echo."""
        typed: str = click.prompt(
            visible(question), default="", show_default=False, hide_input=True
        )
        return typed.strip()

    def yes(self, question: str, *, default: bool = True) -> bool:
        """Yes or no."""
        return click.confirm(visible(question), default=default)


class DefaultPrompter(Prompter):
    """Takes the defaults, and prints the progress to standard error."""

    there = False

    def say(self, *lines: str) -> None:
        """Print lines to standard error."""
        for each in lines:
            echo(each, err=True)

    def choose(self, question: str, choices: Sequence[str], default: str) -> str:
        """The default."""
        return default

    def text(self, question: str, default: str = "") -> str:
        """The default."""
        return default

    def secret(self, question: str) -> str:
        """Nothing."""
        return ""

    def yes(self, question: str, *, default: bool = True) -> bool:
        """The default."""
        return default


@dataclass(slots=True)
class SetupHome:
    """The installation that is set up."""

    settings: Settings
    tell: Callable[[str], None]
    agents: dict[str, Agent] = field(default_factory=dict)
    teams: dict[str, Team] = field(default_factory=dict)
    services: dict[str, CustomProvider] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    """Descriptions of the saved changes."""
    new_settings: list[str] = field(default_factory=list)
    """The names of the changed settings."""

    def load(self) -> None:
        """Load the existing agents, teams and providers, without creating a database."""
        file = database_file(self.settings)
        if file is not None and not file.exists():
            return
        # A database of an earlier version must be upgraded before it can be read.
        migrate_database(self.settings, self.tell)
        with read_transaction(self.settings) as tx:
            self.agents = {each.id: each for each in list_agents(tx)}
            self.teams = {each.id: each for each in list_teams(tx)}
            self.services = {each.id: each for each in list_custom_providers(tx)}

    def save(self, what: str, change: Callable[[Transaction], object]) -> None:
        """Save an answer in the database; creates the database if needed."""
        with defer_interrupts():
            make_directories(self.settings)
            migrate_database(self.settings, self.tell)
            with write_transaction(self.settings) as tx:
                change(tx)
            self.changed.append(what)
        self.load()

    def save_settings(self, what: str, changes: Mapping[str, str | None]) -> None:
        """Save an answer in settings.toml, with a backup of the file."""
        file = SettingsFile(self.settings.home, {}, here=True)
        with defer_interrupts(), file.locked():
            checked = file.check(changes)
            file.write(checked)
            if checked:
                self.changed.append(what)
                self.new_settings += checked
        self.settings, _ = load_lenient(os.environ)
