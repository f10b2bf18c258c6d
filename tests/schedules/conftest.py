"""Processes that a test may kill."""

from __future__ import annotations

from tests.crash.conftest import children

__all__ = ["children"]
