"""What the doctor's checks are made of: checks, problems, verdicts and findings."""

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
    """It works now, and will cause harm later."""
    INFO = "info"
    """A notice; nothing is broken."""


class CheckState(StrEnum):
    """The outcome of a check."""

    FOUND = "found"
    UNKNOWN = "unknown"
    """The check could not be run."""
    OK = "ok"
    SKIPPED = "skipped"
    """The check does not apply to this installation."""


class Needs(IntEnum):
    """What a check requires; each level includes the one before."""

    NOTHING = 0
    DATABASE = 1
    """A database that can be reached."""
    SCHEMA = 2
    """A database with this version's schema."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """How a problem is fixed."""

    steps: tuple[str, ...]
    """The steps, one line each, as a person would type them."""
    apply: Callable[[], str | None]
    """Fixes the problem; returns an extra detail to report, such as the path of a backup."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A problem and its remedy."""

    text: str
    remedy: str
    """A command to run, or an instruction."""
    severity: Severity | None = None
    """The severity, if it differs from the check's."""
    fix: Fix | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """No problem was found, or the check could not be run."""

    state: CheckState = CheckState.OK
    text: str = ""


CheckFunction: TypeAlias = "Callable[[Installation], Problem | Verdict]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check, by its stable id."""

    id: str
    """`group.name`. It never changes, because scripts rely on it."""
    severity: Severity
    about: str
    run: CheckFunction
    needs: Needs = Needs.NOTHING
    deep: bool = False
    """Run only with --deep, because it takes long or costs money."""
    seconds: float = CHECK_SECONDS

    @property
    def group(self) -> str:
        """The part of the installation that is checked."""
        return self.id.partition(".")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The reported outcome of one check."""

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
    """The verdict of a check that does not apply."""
    return Verdict(CheckState.SKIPPED, text)


def unknown(text: str) -> Verdict:
    """The verdict of a check that could not be run."""
    return Verdict(CheckState.UNKNOWN, text)


def check(
    id_: str,
    severity: Severity,
    needs: Needs = Needs.NOTHING,
    *,
    deep: bool = False,
    seconds: float = CHECK_SECONDS,
) -> Callable[[CheckFunction], Check]:
    """Turn a function into a check; its docstring names the problem."""

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
