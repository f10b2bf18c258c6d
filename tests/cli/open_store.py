"""The store behind the commands: what a test sets up or looks up without a process for each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypedDict, Unpack

from sqlalchemy import bindparam, select

from bullpen.core.clock import HOUR
from bullpen.core.company import add_agent
from bullpen.core.ids import RUN_VARIABLE, agent_of, run_token
from bullpen.core.message import Answer, NewMessage, Outcome
from bullpen.core.models import LANES
from bullpen.core.queue.claim import claim, get_claim
from bullpen.core.queue.enqueue import enqueue
from bullpen.core.queue.finish import finish
from bullpen.core.roster.agents import Agent
from bullpen.core.roster.teams import Team, add_team
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from bullpen.core.store.statement import Statement
from tests.cli.command import Bullpen
from tests.stores import FakeClock

CLAIM_TOKEN: Statement[tuple[str]] = Statement(
    lambda: select(LANES.c.claim_token).where(LANES.c.agent == bindparam("agent"))
)


class Asked(TypedDict, total=False):
    """Who asked, and where."""

    channel: str
    sender: str
    sender_id: str | None
    conversation_id: str
    from_agent: str
    origin: str
    files: tuple[str, ...]


ANN = NewMessage(agent="", message="", channel="telegram", sender="Ann", sender_id="4711")


@contextmanager
def direct(bullpen: Bullpen, now: int | None = None) -> Iterator[Store]:
    """The store of this home; at another time, if one is given."""
    clock = None if now is None else FakeClock(now)
    store = open_store(Settings.load(bullpen.environment()), clock=clock)
    try:
        yield store
    finally:
        store.close()


def at_work(
    bullpen: Bullpen, agent: str, text: str = "hello", **more: Unpack[Asked]
) -> dict[str, str]:
    """Let an agent work on a message, of Ann's unless another is named; gives its environment."""
    with direct(bullpen) as store, store.write() as tx:
        enqueue(tx, replace(ANN, agent=agent, message=text, **more))
        work = claim(tx, "worker", agent=agent, lease=HOUR)
        assert work is not None
    return {RUN_VARIABLE: run_token(work.token)}


def end_work(bullpen: Bullpen, environ: dict[str, str]) -> None:
    """End the run that has this environment."""
    agent = agent_of(environ[RUN_VARIABLE])
    with direct(bullpen) as store, store.write() as tx:
        row = tx.one(CLAIM_TOKEN, {"agent": agent})
        assert row is not None
        finish(tx, get_claim(tx, row[0]), Outcome(answers=(Answer(message="done"),)))


def company(bullpen: Bullpen) -> Bullpen:
    """Take on three agents, two of them in a team."""
    with direct(bullpen) as store, store.write() as tx:
        for name in ("coder", "tester", "stranger"):
            add_agent(tx, Agent(id=name))
        add_team(tx, Team(id="dev", leader="coder", members=("coder", "tester")))
    return bullpen
