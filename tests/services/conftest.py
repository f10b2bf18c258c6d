"""Homes whose services are started for real, each at a port of its own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cli.command import Bullpen
from tests.cli.conftest import empty as home
from tests.ports import free_port

__all__ = ["home"]


@pytest.fixture
def empty(home: Bullpen) -> Bullpen:
    """A new home, without a database."""
    return replace(home, environ={"BULLPEN_API_PORT": str(free_port())})


@pytest.fixture
def up(empty: Bullpen) -> Bullpen:
    """A home in which everything runs."""
    empty.ok("up")
    return empty
