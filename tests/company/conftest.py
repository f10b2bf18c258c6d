"""A store at the machine's own time, for processes that work on it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from tests.company.office import living
from tests.processor.working import eventually
from tests.stores import Stores


@pytest.fixture
def settings(stores: Stores, kind: str) -> Iterator[Settings]:
    """A home with a fresh database; nothing that its agents started is left at the end."""
    made = stores.settings(kind)
    yield made
    eventually(lambda: living(made) == [], "no child is left")


@pytest.fixture
def store(stores: Stores, settings: Settings) -> Iterator[Store]:
    """An empty store on the machine's own time."""
    with stores.opened(settings) as opened:
        yield opened
