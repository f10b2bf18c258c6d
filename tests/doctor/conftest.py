"""Homes for the doctor, as for the command line, each with a port that no other has."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.command import Bullpen
from tests.cli.conftest import bullpen, remove, stop_all
from tests.cli.warm import FIRST
from tests.ports import free_port
from tests.stores import Stores

__all__ = ["bullpen"]


@pytest.fixture
def empty() -> Iterator[Bullpen]:
    """The command in a new home without a database."""
    with home() as made:
        yield made


@contextmanager
def home() -> Iterator[Bullpen]:
    """A new home, and the end of all that was started in it."""
    home = Path(tempfile.mkdtemp(prefix="bp-", dir="/tmp"))
    own = home / "person"
    own.mkdir()
    # Nobody is logged in to anything in the directory of the person whose home it is.
    environ = {
        "BULLPEN_API_PORT": str(free_port()),
        "HOME": str(own),
        FIRST: "tests.doctor.unhurried",
    }
    try:
        yield Bullpen(home, environ)
    finally:
        stop_all(home)
        remove(home)


@pytest.fixture
def on_both(empty: Bullpen, stores: Stores, kind: str) -> Bullpen:
    """The command on SQLite and on PostgreSQL."""
    if kind == "sqlite":
        shutil.copy(stores.sqlite_template(), empty.home / "bullpen.db")
        return empty
    url = stores.settings(kind).database_url
    return Bullpen(empty.home, {**empty.environ, "BULLPEN_DATABASE_URL": url})
