"""One API for the tests of a file, on each store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bullpen.core.company import add_agent
from bullpen.core.roster.agents import HTTP, Agent
from bullpen.core.roster.teams import Team, add_team
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from tests.api.served import Served, serving
from tests.stores import Stores

ABOUT_THE_STORE = ("claims", "deliveries", "keys", "metrics", "queue", "schedules", "worker")
"""What the names of the files end with that have tests of locks, leases or plans."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """The API is not about the store: what it calls has tests of its own on both."""
    if not item.path.stem.endswith(ABOUT_THE_STORE):
        item.add_marker(pytest.mark.one_store("file"))


@pytest.fixture(
    scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]
)
def office(request: pytest.FixtureRequest, stores: Stores) -> Settings:
    """A home with agents, workers outside, and a team."""
    settings = stores.settings(request.param)
    store = open_store(settings)
    with store.write() as tx:
        add_agent(tx, Agent(id="assistant"))
        add_agent(tx, Agent(id="coder", name="Code Wizard"))
        add_agent(tx, Agent(id="worker", provider=HTTP))
        add_agent(tx, Agent(id="other", provider=HTTP))
        add_team(tx, Team(id="dev", leader="coder", members=("coder", "worker")))
    store.close()
    return settings


@pytest.fixture(scope="module")
def served(office: Settings) -> Iterator[Served]:
    """The API of that home. Nothing runs the agents: what they do is the test's to say."""
    with serving(office) as running:
        yield running


@pytest.fixture
def inside(office: Settings) -> Iterator[Store]:
    """The store of that home, to look behind the API."""
    store = open_store(office)
    yield store
    store.close()
