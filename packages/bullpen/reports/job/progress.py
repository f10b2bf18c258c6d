"""Progress: the steps of a run as they happen, and what the run did."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum


class Step(StrEnum):
    """What a run does."""

    LANDING = "landing"
    LANDED = "landed"
    REPAIRING = "repairing"
    COMPACTING = "compacting"
    STARTING = "starting"
    """Spark starts."""
    COMPUTING = "computing"
    COMPUTED = "computed"
    FAILED = "failed"
    SAVING = "saving"
    """The manifest is replaced."""
    SAVED = "saved"
    POSTPONED = "postponed"
    """The next run does it."""


@dataclass(frozen=True, slots=True)
class Progress:
    """A step of a run that begins, or that has ended."""

    step: Step
    name: str = ""
    """The table or the report."""
    rows: int = 0
    days: int | None = None
    """The number of days that are computed; None if every day is."""
    text: str = ""


Tell = Callable[[Progress], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOutcome:
    """What a run did for a report."""

    name: str
    rows: int = 0
    """The rows that were computed."""
    days: int | None = 0
    """The number of days; None if every day was computed."""
    seconds: float = 0.0
    error: str = ""
    """Why it could not be computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run did."""

    run: int
    changed: bool
    """Whether there was anything to do."""
    landed: Mapping[str, int]
    """The new facts, by table."""
    reports: tuple[ReportOutcome, ...]
    covers_until: int | None
    waiting_for: tuple[str, ...]
    """Tables whose newest rows a transaction that is still open keeps from being read."""
    seconds: float

    @property
    def failed(self) -> tuple[ReportOutcome, ...]:
        """The reports that could not be computed."""
        return tuple(each for each in self.reports if each.error)
