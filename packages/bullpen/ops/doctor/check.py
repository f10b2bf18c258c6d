"""A check: what it is called, how bad it is, and what it says of an installation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import TypeAlias

from bullpen.ops.doctor.installation import Installation

CHECK_SECONDS = 2.0
"""What a check may take, unless it says more."""


class Severity(StrEnum):
    """How bad it is, the worst first."""

    CRITICAL = "critical"
    """Something does not work, or lies open."""
    WARNING = "warning"
    """It works, and will hurt."""
    INFO = "info"
    """Good to know."""


class CheckState(StrEnum):
    """What came of a check."""

    FOUND = "found"
    UNKNOWN = "unknown"
    """It could not be made."""
    OK = "ok"
    SKIPPED = "skipped"
    """There is nothing here that it is about."""


class Needs(IntEnum):
    """What a check cannot do without; each holds what comes before."""

    NOTHING = 0
    DATABASE = 1
    """A database that answers."""
    SCHEMA = 2
    """One of this version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """How it is put right."""

    steps: tuple[str, ...]
    """What is done, one line each, as a person would type it."""
    do: Callable[[], str | None]
    """Gives what more there is to say about it, as where a backup lies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is wrong."""

    text: str
    remedy: str
    """What to type, or what to do."""
    severity: Severity | None = None
    """Where it is not what the check says."""
    fix: Fix | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """Nothing is wrong, or nobody can tell."""

    state: CheckState = CheckState.OK
    text: str = ""


CheckFunction: TypeAlias = "Callable[[Installation], Problem | Verdict]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check."""

    id: str
    """`group.name`; it stays, for people write it into their scripts."""
    severity: Severity
    about: str
    look: CheckFunction
    needs: Needs = Needs.NOTHING
    deep: bool = False
    """Only where somebody asked for it, for it takes long or costs something."""
    seconds: float = CHECK_SECONDS

    @property
    def group(self) -> str:
        """What it is about, in a word."""
        return self.id.partition(".")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What came of one check."""

    id: str
    severity: Severity
    state: CheckState
    text: str = ""
    remedy: str = ""
    fix: Fix | None = None

    @property
    def group(self) -> str:
        """What it is about, in a word."""
        return self.id.partition(".")[0]


PASSED = Verdict()


def skipped(text: str) -> Verdict:
    """It is about nothing here."""
    return Verdict(CheckState.SKIPPED, text)


def unknown(text: str) -> Verdict:
    """It could not be made."""
    return Verdict(CheckState.UNKNOWN, text)


def check(
    id_: str,
    severity: Severity,
    needs: Needs = Needs.NOTHING,
    *,
    deep: bool = False,
    seconds: float = CHECK_SECONDS,
) -> Callable[[CheckFunction], Check]:
    """Make a function a check; its docstring says what it is about."""

    def made(look: CheckFunction) -> Check:
        return Check(
            id=id_,
            severity=severity,
            about=(look.__doc__ or "").strip().partition("\n")[0].rstrip("."),
            look=look,
            needs=needs,
            deep=deep,
            seconds=seconds,
        )

    return made
