"""Homes whose services are started for real, each at a port of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.command import Bullpen
from tests.cli.conftest import remove, stop_all
from tests.ports import free_port


@contextmanager
def new_home() -> Iterator[Bullpen]:
    """The command in a new home, and the end of all that was started in it."""
    home = Path(tempfile.mkdtemp(prefix="bp-", dir="/tmp"))
    try:
        yield Bullpen(home, {"BULLPEN_API_PORT": str(free_port())})
    finally:
        stop_all(home)
        remove(home)


@pytest.fixture
def empty() -> Iterator[Bullpen]:
    """A new home, without a database."""
    with new_home() as made:
        yield made


@pytest.fixture
def up(empty: Bullpen) -> Bullpen:
    """A home in which everything runs."""
    empty.ok("up")
    return empty


@pytest.fixture(scope="module")
def at_work() -> Iterator[Bullpen]:
    """The same, for tests after which everything runs again."""
    with new_home() as made:
        made.ok("up")
        yield made
