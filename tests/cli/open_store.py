"""The store behind the commands: what a test sets up or looks up without a process for each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bullpen.core.company import add_agent
from bullpen.core.roster.agents import Agent
from bullpen.core.roster.teams import Team, add_team
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from tests.cli.command import Bullpen
from tests.stores import FakeClock


@contextmanager
def direct(bullpen: Bullpen, now: int | None = None) -> Iterator[Store]:
    """The store of this home; at another time, if one is given."""
    clock = None if now is None else FakeClock(now)
    store = open_store(Settings.load(bullpen.environment()), clock=clock)
    try:
        yield store
    finally:
        store.close()


def company(bullpen: Bullpen) -> Bullpen:
    """Take on three agents, two of them in a team."""
    with direct(bullpen) as store, store.write() as tx:
        for name in ("coder", "tester", "stranger"):
            add_agent(tx, Agent(id=name))
        add_team(tx, Team(id="dev", leader="coder", members=("coder", "tester")))
    return bullpen
