"""What a command line needs to know to be a provider: one file each says it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bullpen.core.outcome import Failure
from bullpen.processor.children.child import End
from bullpen.processor.providers.provider import Reply, Turn


@dataclass(frozen=True, slots=True)
class Command:
    """A program with its arguments, what is added to its environment, and what it reads."""

    argv: tuple[str, ...]
    environ: dict[str, str]
    stdin: str
    hides: tuple[str, ...] = ()
    """What of the harness's variables this run may not see: they speak for somebody else."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The session to be resumed does not exist any more."""

    why: str


class Reader(Protocol):
    """Reads what one run prints."""

    def line(self, text: str) -> str | None:
        """Take a line of the output; gives what to tell those who watch."""
        ...

    def close(self, end: End, errors: str) -> Reply | Failure | Lost:
        """The run is over: what came of it."""
        ...


class Harness(Protocol):
    """One command line."""

    @property
    def passes(self) -> tuple[str, ...]:
        """The variables that it may see besides the common ones; `X_*` is all that begin so."""
        ...

    def command(self, turn: Turn, system_file: Path) -> Command:
        """How to start it for this turn; the file holds the turn's system prompt."""
        ...

    def reader(self, turn: Turn) -> Reader:
        """What reads the output of this turn's run."""
        ...
