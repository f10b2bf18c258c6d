"""Where programs are started."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processor.turns import PATIENCE, Place, launching


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A scratch directory, where who is asked to end has time for it."""
    with launching(PATIENCE) as launcher, Place(tmp_path, launcher) as made:
        yield made


@pytest.fixture
def hasty(tmp_path: Path) -> Iterator[Place]:
    """The same without that time."""
    with launching() as launcher, Place(tmp_path, launcher) as made:
        yield made
