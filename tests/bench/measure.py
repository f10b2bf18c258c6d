"""A measure: what was measured, once in each round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median


class Unit(StrEnum):
    """What the numbers are."""

    RATE = "/s"
    MICROS = "us"
    MILLIS = "ms"
    SECONDS = "s"
    RATIO = "x"
    PERCENT = "%"
    KIB = "KiB"
    MIB = "MiB"
    COUNT = ""


@dataclass(frozen=True, slots=True)
class Measure:
    """One line of the report."""

    what: str
    unit: Unit
    rounds: Sequence[float]
    note: str = ""
    details: Mapping[str, float] = field(default_factory=dict)
    """Further numbers for the JSON."""

    @property
    def value(self) -> float:
        """The middle of the rounds."""
        return median(self.rounds)


def quantile(values: Sequence[float], part: float) -> float:
    """The value that this part of all values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]
