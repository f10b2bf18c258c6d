"""Who does what, and what it took: as the rows say, and cheaply."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bullpen.core.clock import DAY, HOUR, MINUTE, SECOND
from bullpen.core.errors import UnknownTeam
from bullpen.core.inspect.activity import (
    AgentActivity,
    get_company_status,
    last_run_before,
    run_totals_since,
)
from bullpen.core.message import Answer, ErrorKind, Outcome, Usage
from bullpen.core.queue.attempts import RunTotals
from bullpen.core.queue.lanes import delay_lane, drain_lane, pause_lane
from bullpen.core.roster.teams import Team, add_team
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from tests.conformance.verbs import do, done, failed, hire, send, take
from tests.stores import FakeClock, Stores


@pytest.fixture
def timed(stores: Stores, settings: Settings, clock: FakeClock) -> Iterator[Store]:
    """A store whose clock the test moves."""
    with stores.opened(settings, clock) as opened:
        yield opened


def doings(store: Store, team: str | None = None) -> dict[str, AgentActivity]:
    """What each agent is at."""
    with store.read() as tx:
        return {each.agent.id: each.activity for each in get_company_status(tx, team).agents}


def spent(store: Store, since: int) -> dict[str, RunTotals]:
    """What was spent since a moment."""
    with store.read() as tx:
        return run_totals_since(tx, since, last_run_before(tx, since))


def run(store: Store, agent: str, tokens: int, cost: float, **more: object) -> None:
    """A run of this agent that took so much."""
    send(store, "go", agent, **more)
    usage = Usage(provider="echo", model="m", output_tokens=tokens, cost=cost)
    done(store, take(store, agent).token, Outcome(answers=(Answer(message="x"),), usage=usage))


def test_each_state_of_an_agent_is_told_apart(timed: Store, clock: FakeClock) -> None:
    for each in ("idle", "processing", "pending", "rate-limited", "paused", "draining"):
        hire(timed, each)
    for each in ("processing", "pending", "rate-limited", "paused", "draining"):
        send(timed, "go", each)
    take(timed, "processing")
    do(timed, delay_lane, "rate-limited", clock.now() + HOUR)
    do(timed, pause_lane, "paused", "by hand")
    do(timed, drain_lane, "draining")
    assert doings(timed) == {
        each.value: each for each in AgentActivity if each is not AgentActivity.LOST
    }
    clock.advance(2 * MINUTE)  # nobody has renewed the lease
    assert doings(timed)["processing"] is AgentActivity.LOST


def test_a_team_is_seen_in_its_order_and_alone(timed: Store) -> None:
    for each in ("coder", "reviewer", "stranger"):
        hire(timed, each)
    do(timed, add_team, Team(id="dev", leader="coder", members=("reviewer", "coder")))
    assert list(doings(timed, "dev")) == ["reviewer", "coder"]
    with pytest.raises(UnknownTeam):
        doings(timed, "nobody")


def test_a_run_says_for_whom_since_when_and_what_its_talk_cost(
    timed: Store, clock: FakeClock
) -> None:
    hire(timed)
    run(timed, "coder", 100, 0.5, conversation_id="talk", message_id="first")
    run(timed, "coder", 7, 0.25)
    send(timed, "and now", "coder", conversation_id="talk", sender="ada")
    clock.advance(SECOND)
    take(timed, "coder")
    with timed.read() as tx:
        (work,) = get_company_status(tx).agents
    assert work.run is not None
    assert (work.run.message.message, work.run.since) == ("and now", clock.now())
    assert work.run.conversation == RunTotals(runs=1, cost=0.5, output_tokens=100)


def test_only_what_ended_since_is_counted(timed: Store, clock: FakeClock) -> None:
    for each in ("coder", "reviewer"):
        hire(timed, each)
    run(timed, "coder", 1000, 9.0)
    clock.advance(DAY)
    run(timed, "coder", 1000, 90.0)
    clock.advance(SECOND)
    midnight = clock.now()
    assert spent(timed, midnight) == {}
    clock.advance(1)
    run(timed, "coder", 10, 0.5)
    run(timed, "reviewer", 20, 0.25)
    send(timed, "go", "coder")
    failed(timed, take(timed, "coder").token, ErrorKind.PERMANENT)
    found = spent(timed, midnight)
    assert found["coder"] == RunTotals(runs=2, cost=0.5, output_tokens=10)
    assert sum(found.values(), RunTotals()) == RunTotals(runs=3, cost=0.75, output_tokens=30)
    assert spent(timed, midnight - 2 * DAY)["coder"].cost == 99.5
