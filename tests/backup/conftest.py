"""Homes that are worth a backup, and what takes backups of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from tests.backup.homes import lived_in
from tests.crash.children import Children, brood
from tests.stores import FakeClock, Stores


@pytest.fixture
def home(stores: Stores, kind: str) -> Settings:
    """A home in which something of everything is, on both databases."""
    settings = stores.settings(kind)
    with stores.opened(settings, FakeClock()) as store:
        lived_in(store)
    return settings


@pytest.fixture
def store(stores: Stores, home: Settings, clock: FakeClock) -> Iterator[Store]:
    """Its store."""
    with stores.opened(home, clock) as opened:
        yield opened


@pytest.fixture
def children(tmp_path: Path) -> Iterator[Children]:
    """A maker of processes, none of which is left afterwards."""
    with brood(tmp_path / "errors") as made:
        yield made
        made.check()
