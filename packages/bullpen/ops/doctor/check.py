"""The vocabulary of the doctor: checks, and the problems and verdicts that they give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import TypeAlias

from bullpen.ops.doctor.installation import Installation

CHECK_SECONDS = 2.0
"""The time limit of a check that sets none of its own."""


class Severity(StrEnum):
    """How bad a problem is, the worst first."""

    CRITICAL = "critical"
    """Something does not work, or is open to others."""
    WARNING = "warning"
    """It works now, and will do harm."""
    INFO = "info"
    """Good to know."""


class CheckState(StrEnum):
    """The outcome of a check."""

    FOUND = "found"
    UNKNOWN = "unknown"
    """The check could not be made."""
    OK = "ok"
    SKIPPED = "skipped"
    """There is nothing here to check."""


class Needs(IntEnum):
    """What a check requires; each level includes the one before."""

    NOTHING = 0
    DATABASE = 1
    """A database that answers."""
    SCHEMA = 2
    """A database at this version's revision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """How a problem is fixed."""

    steps: tuple[str, ...]
    """What is done, one line each, as a person would type it."""
    apply: Callable[[], str | None]
    """Fixes it; gives what else to report, such as the path of a backup."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is wrong, and what to do about it."""

    text: str
    remedy: str
    """What to type, or what to do."""
    severity: Severity | None = None
    """If it differs from the severity of the check."""
    fix: Fix | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """No problem was found, or the check could not be made."""

    state: CheckState = CheckState.OK
    text: str = ""


CheckFunction: TypeAlias = "Callable[[Installation], Problem | Verdict]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check, by its stable id."""

    id: str
    """`group.name`. It never changes, because scripts use it."""
    severity: Severity
    about: str
    run: CheckFunction
    needs: Needs = Needs.NOTHING
    deep: bool = False
    """Made only with --deep, because it takes long or costs money."""
    seconds: float = CHECK_SECONDS

    @property
    def group(self) -> str:
        """The part of the installation that is checked."""
        return self.id.partition(".")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The outcome of one check, as it is reported."""

    id: str
    severity: Severity
    state: CheckState
    text: str = ""
    remedy: str = ""
    fix: Fix | None = None

    @property
    def group(self) -> str:
        """The part of the installation that was checked."""
        return self.id.partition(".")[0]


PASSED = Verdict()


def skipped(text: str) -> Verdict:
    """The verdict if there is nothing here to check."""
    return Verdict(CheckState.SKIPPED, text)


def unknown(text: str) -> Verdict:
    """The verdict if the check could not be made."""
    return Verdict(CheckState.UNKNOWN, text)


def check(
    id_: str,
    severity: Severity,
    needs: Needs = Needs.NOTHING,
    *,
    deep: bool = False,
    seconds: float = CHECK_SECONDS,
) -> Callable[[CheckFunction], Check]:
    """Make a check of a function, whose docstring names the problem that it looks for."""

    def decorate(function: CheckFunction) -> Check:
        return Check(
            id=id_,
            severity=severity,
            about=(function.__doc__ or "").strip().partition("\n")[0].rstrip("."),
            run=function,
            needs=needs,
            deep=deep,
            seconds=seconds,
        )

    return decorate
