"""What the tests with the real command lines share. `make real` runs them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from tests.real.clis import BIN, Cli, make
from tests.real.office import Office
from tests.stores import Stores

WANTED = "BULLPEN_REAL"
FOREIGN = ("ANTHROPIC_", "CLAUDE", "OPENAI_", "CODEX_")


def pytest_collect_file() -> None:
    """Leave the whole directory out, in one line, unless its tests are asked for."""
    if not os.environ.get(WANTED):
        pytest.skip("left out: `make real` installs claude and codex and runs their tests")


@pytest.fixture(autouse=True)
def _no_account(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody's own account is used."""
    for name in list(os.environ):
        if name.upper().startswith(FOREIGN) or name.upper().endswith("_PROXY"):
            monkeypatch.delenv(name)


@pytest.fixture
def kind(request: pytest.FixtureRequest) -> str:
    """Which database; the runs' own tests see to both."""
    return str(getattr(request, "param", "sqlite"))


@pytest.fixture
def settings(stores: Stores, kind: str, tmp_path: Path) -> Settings:
    """A home with a fresh database, and an empty workspace."""
    return stores.settings(kind, workspace=tmp_path / "workspace")


@pytest.fixture
def store(stores: Stores, settings: Settings) -> Iterator[Store]:
    """An empty store on the machine's own time."""
    with stores.opened(settings) as opened:
        yield opened


@pytest.fixture
def office(store: Store, tmp_path: Path) -> Office:
    """A place to work, where nobody works yet."""
    return Office(store, tmp_path)


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A directory outside of /tmp: codex's own sandbox refuses a home there if it is bubblewrap."""
    with TemporaryDirectory(prefix="bullpen-real-", dir="/var/tmp") as made:
        yield Path(made)


@pytest.fixture
def claude(store: Store, scratch: Path) -> Iterator[Cli]:
    """claude."""
    yield from _cli("claude", store, scratch)


@pytest.fixture
def codex(store: Store, scratch: Path) -> Iterator[Cli]:
    """codex."""
    yield from _cli("codex", store, scratch)


@pytest.fixture(params=["claude", "codex"])
def cli(request: pytest.FixtureRequest, store: Store, scratch: Path) -> Iterator[Cli]:
    """Each of the two."""
    yield from _cli(request.param, store, scratch)


def _cli(name: str, store: Store, scratch: Path) -> Iterator[Cli]:
    assert (BIN / name).exists(), f"{BIN / name} is missing: sh deploy/clis.sh installs it"
    made = make(name, scratch)
    with made.server:
        made.prepare(store)
        yield made
