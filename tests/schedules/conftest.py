"""A database of its own for each test, which is gone afterwards; and processes that are as well."""

from __future__ import annotations

from tests.conformance.conftest import settings
from tests.crash.conftest import children

__all__ = ["children", "settings"]
