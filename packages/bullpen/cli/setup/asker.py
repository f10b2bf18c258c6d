"""Where the answers come from: a person at the terminal, or nobody, who takes what is usual."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import click


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
