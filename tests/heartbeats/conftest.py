"""A database of its own for each test, which is gone afterwards."""

from __future__ import annotations

from tests.conformance.conftest import settings

__all__ = ["settings"]
