"""What a section is given, and what it gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.measure import Measure
from tests.bench.scale import Scale
from tests.bench.stores import BenchStores


@dataclass(frozen=True, slots=True)
class Bench:
    """One run of the bench."""

    stores: BenchStores
    scale: Scale
    missing: list[str] = field(default_factory=list)
    """Peers that are not installed."""

    @property
    def directory(self) -> Path:
        """Where every file of the run lies."""
        return self.stores.directory


@dataclass(frozen=True, slots=True)
class Section:
    """The measures of a section, and what it checked."""

    measures: list[Measure]
    checks: dict[str, bool] = field(default_factory=dict)
