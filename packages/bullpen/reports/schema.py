"""Column: a column of facts or of a report, with its type, its unit and what it means."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Type(StrEnum):
    """The type of a column."""

    TEXT = "text"
    INTEGER = "integer"
    """64 bits. Times are milliseconds since 1970, UTC."""
    NUMBER = "number"
    """A double."""
    BOOLEAN = "boolean"
    DATE = "date"


class Unit(StrEnum):
    """What a number means, so that people see `1.5 s` and not `1500`."""

    COUNT = "count"
    MILLISECONDS = "ms"
    TIME = "time"
    """Milliseconds since 1970, UTC."""
    TOKENS = "tokens"
    DOLLARS = "USD"
    MICRO_DOLLARS = "micro-USD"
    """Millionths of a dollar: integers, whose sums are exact."""
    SHARE = "share"
    """From 0 to 1."""
    WEEKDAY = "weekday"
    """From 1 (Monday) to 7."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column. Its description is shown in the documentation, the API and the help."""

    name: str
    type: Type
    description: str
    unit: Unit | None = None


Schema = tuple[Column, ...]
"""The columns of a table, in order."""
