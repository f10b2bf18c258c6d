"""Where the answers come from: a person at the terminal, or nobody, who takes what is usual."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import click

from bullpen.cli.command import read_transaction, write_transaction
from bullpen.cli.interrupts import defer_interrupts
from bullpen.cli.up import migrate_database
from bullpen.core.roster.agents import Agent, list_agents
from bullpen.core.roster.providers import CustomProvider, list_custom_providers
from bullpen.core.roster.teams import Team, list_teams
from bullpen.core.settings import Settings
from bullpen.core.settings.file import SettingsFile
from bullpen.core.settings.parse import load_lenient
from bullpen.core.store.open import database_file
from bullpen.core.store.transaction import Transaction
from bullpen.ops.services.programs import make_directories


class Prompter(ABC):
    """Answers questions; every question has an answer that is usual."""

    @abstractmethod
    def say(self, *lines: str) -> None:
        """Tell how it goes."""

    @abstractmethod
    def choose(self, question: str, choices: Sequence[str], usual: str) -> str:
        """One of these."""

    @abstractmethod
    def text(self, question: str, usual: str = "") -> str:
        """A text without blanks around it; empty if nothing was said and nothing is usual."""

    @abstractmethod
    def secret(self, question: str) -> str:
        """A text that is not seen while it is typed; empty if nothing was said."""

    @abstractmethod
    def yes(self, question: str, *, usual: bool = True) -> bool:
        """Whether it is so."""

    @property
    @abstractmethod
    def there(self) -> bool:
        """Whether somebody may say something else the next time."""


class TerminalPrompter(Prompter):
    """Somebody at a terminal."""

    there = True

    def say(self, *lines: str) -> None:
        """Print lines."""
        for each in lines:
            click.echo(each)

    def choose(self, question: str, choices: Sequence[str], usual: str) -> str:
        """One of these; what is none of them is asked for again."""
        chosen: str = click.prompt(question, type=click.Choice(choices), default=usual)
        return chosen

    def text(self, question: str, usual: str = "") -> str:
        """What is typed."""
        typed: str = click.prompt(question, default=usual, show_default=bool(usual))
        return typed.strip()

    def secret(self, question: str) -> str:
        """What is typed, unseen."""
        typed: str = click.prompt(question, default="", show_default=False, hide_input=True)
        return typed.strip()

    def yes(self, question: str, *, usual: bool = True) -> bool:
        """Yes or no."""
        return click.confirm(question, default=usual)


class DefaultPrompter(Prompter):
    """Takes what is usual, and tells how it goes on standard error."""

    there = False

    def say(self, *lines: str) -> None:
        """Print lines beside the document."""
        for each in lines:
            click.echo(each, err=True)

    def choose(self, question: str, choices: Sequence[str], usual: str) -> str:
        """What is usual."""
        return usual

    def text(self, question: str, usual: str = "") -> str:
        """What is usual."""
        return usual

    def secret(self, question: str) -> str:
        """Nothing."""
        return ""

    def yes(self, question: str, *, usual: bool = True) -> bool:
        """What is usual."""
        return usual


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
