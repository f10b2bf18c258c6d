"""Stores on which only a hint ends a wait."""

from __future__ import annotations

import pytest

from bullpen.core.settings import Settings
from tests.stores import Stores
from tests.wake.listening import NO_POLL


@pytest.fixture
def settings(stores: Stores, kind: str) -> Settings:
    """A home with a fresh database, and nobody polls."""
    return stores.settings(kind, **NO_POLL)
