"""A store at the machine's own time: the views have a store of their own on the same database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bullpen.cli.views import app
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from tests.stores import Stores


@pytest.fixture
def store(stores: Stores, settings: Settings) -> Iterator[Store]:
    """An empty store on the machine's own time."""
    with stores.opened(settings) as opened:
        yield opened


@pytest.fixture(autouse=True)
def lasting_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is refused stays on the screen, however late it is looked at."""
    monkeypatch.setattr(app, "NOTE_SECONDS", 600.0)
