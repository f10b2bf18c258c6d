"""What the crash tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bullpen.core.settings import Settings
from tests.crash.children import Children, brood
from tests.crash.work import Platform, open_lanes
from tests.stores import Stores


@pytest.fixture
def settings(stores: Stores, kind: str) -> Settings:
    """A home with a fresh database and the lanes of the crash tests."""
    made = stores.settings(kind)
    with stores.opened(made) as store:
        open_lanes(store)
    return made


@pytest.fixture
def children(tmp_path: Path) -> Iterator[Children]:
    """A maker of processes, none of which is left afterwards."""
    with brood(tmp_path / "errors") as made:
        yield made
        made.check()


@pytest.fixture
def platform(tmp_path: Path) -> Platform:
    """Where responses are sent."""
    return Platform(tmp_path / "platform")
