"""Homes for the command line, and the end of all that was started in them."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from bullpen.core.settings import Settings
from tests.cli.command import Bullpen
from tests.processor.working import eventually
from tests.stores import Stores


def pytest_itemcollected(item: pytest.Item) -> None:
    """A command is not about the store: what it calls has tests of its own on both."""
    item.add_marker("one_store")


@pytest.fixture
def empty() -> Iterator[Bullpen]:
    """The command in a new home without a database. Its path is short enough for sockets."""
    home = Path(tempfile.mkdtemp(prefix="bp-", dir="/tmp"))
    yield Bullpen(home)
    stop_all(home)
    remove(home)


@pytest.fixture
def bullpen(empty: Bullpen, stores: Stores) -> Bullpen:
    """The command in a new home with a migrated database."""
    shutil.copy(stores.sqlite_template(), empty.home / "bullpen.db")
    return empty


@pytest.fixture
def on_both(empty: Bullpen, stores: Stores, kind: str) -> Bullpen:
    """The command on SQLite and on PostgreSQL."""
    if kind == "sqlite":
        shutil.copy(stores.sqlite_template(), empty.home / "bullpen.db")
        return empty
    settings: Settings = stores.settings(kind)
    return Bullpen(empty.home, {"BULLPEN_DATABASE_URL": settings.database_url})


def remove(home: Path) -> None:
    """Remove it, also if something that ends writes a last line there meanwhile."""

    def gone() -> bool:
        shutil.rmtree(home, ignore_errors=True)
        return not home.exists()

    eventually(gone, f"{home} is removed")


def stop_all(home: Path) -> None:
    """Kill the supervisors that a test left running in this home, and what they had started."""
    family: list[psutil.Process] = []
    for path in home.rglob("recover"):
        path.unlink(missing_ok=True)
    for path in home.rglob("supervisord.pid"):
        with contextlib.suppress(OSError, ValueError, psutil.Error):
            supervisor = psutil.Process(int(path.read_text()))
            if supervisor.environ().get("BULLPEN_HOME", "").startswith(str(home)):
                family += [supervisor, *supervisor.children(recursive=True)]
    for process in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(family, timeout=60)
