"""Several real processors on one store: each message once, in order, whoever dies or stops."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

from bullpen.core.company import add_agent
from bullpen.core.models import ATTEMPTS, MESSAGES, RESPONSES
from bullpen.core.queue.lanes import Batching, LanePolicy
from bullpen.core.roster.agents import Agent
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from tests.crash.account import check_integrity, rows
from tests.crash.children import until
from tests.crash.processors import ask, holder, processing, wait_for_states, wait_for_workers

AGENTS = [f"agent{number}" for number in range(20)]
LEAST_ROUNDS = 15
LONG = 180.0
"""Generous; it takes a few seconds."""


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    """The store at the present time, with a lane for each agent; half of them answer in batches."""
    opened = open_store(settings)
    with opened.write() as tx:
        for number, agent in enumerate(AGENTS):
            batching = Batching.ONE if number % 2 else Batching.ALL
            add_agent(tx, Agent(id=agent), LanePolicy(batching=batching))
    yield opened
    check_integrity(opened)
    opened.close()


@pytest.mark.slow
def test_three_processors_answer_every_message_once_and_in_order(
    settings: Settings, store: Store
) -> None:
    rounds = 0
    with processing(settings, 3, max_runs=4) as processors:
        wait_for_workers(store, 3)
        # One that the machine let stand still all the while gets its share later.
        while rounds < LEAST_ROUNDS or (len(_workers(store)) < 3 and rounds < 20 * LEAST_ROUNDS):
            for number in range(rounds, rounds + LEAST_ROUNDS):
                for agent in AGENTS:
                    ask(store, agent, f"!sleep 0.01\n!say {agent}/{number}", prefix=f"n{number}")
            rounds += LEAST_ROUNDS
            wait_for_states(store, {"completed": rounds * len(AGENTS)}, LONG)
        processors.stop()
    for agent in AGENTS:
        texts = [row["message"] for row in rows(store, RESPONSES) if row["agent"] == agent]
        said = [line for text in texts for line in text.split("\n\n")]
        assert said == [f"{agent}/{number}" for number in range(rounds)]
    assert len(_workers(store)) == 3
    assert {row["outcome"] for row in rows(store, ATTEMPTS)} == {"completed"}


def _workers(store: Store) -> set[str]:
    """Those that ran something."""
    return {row["worker"] for row in rows(store, ATTEMPTS)}


@pytest.mark.slow
def test_what_a_killed_processor_was_running_is_taken_up_by_another(
    settings: Settings, store: Store
) -> None:
    with processing(settings, 3) as processors:
        wait_for_workers(store, 3)
        (asked,) = ask(store, AGENTS[0], "!sleep 600\n!say too late")
        others = [ask(store, agent, "hello")[0] for agent in AGENTS[1:]]
        os.kill(holder(store, asked), signal.SIGKILL)
        until(lambda: len(processors.alive()) == 2, "it is dead")
        with store.engine.begin() as connection:
            mine = MESSAGES.update().where(MESSAGES.c.message_id == asked)
            connection.execute(mine.values(message="!say after all"))
        (before,) = (row for row in rows(store, MESSAGES) if row["message_id"] == asked)
        processors.end_leases_of_the_dead(store)
        wait_for_states(store, {"completed": 1 + len(others)}, LONG)
        assert len(processors.alive()) == 2
        processors.stop()
    assert (before["status"], before["crash_count"]) == ("processing", 0)
    outcomes = [row for row in rows(store, ATTEMPTS) if row["message_id"] == asked]
    assert [row["outcome"] for row in outcomes] == ["crashed", "completed"]
    assert outcomes[0]["worker"] != outcomes[1]["worker"]
    (message,) = (row for row in rows(store, MESSAGES) if row["message_id"] == asked)
    assert (message["crash_count"], message["retry_count"]) == (1, 0)
    answers = [row["message"] for row in rows(store, RESPONSES) if row["message_id"] == asked]
    assert answers == ["after all"]


@pytest.mark.slow
@pytest.mark.one_store
def test_a_sleep_of_the_machine_longer_than_a_lease_ends_no_run(
    settings: Settings, store: Store
) -> None:
    with processing(settings, 1, lease_seconds=3) as processors:
        asked = [ask(store, agent, "!sleep 7\n!say awake")[0] for agent in AGENTS[:6]]
        for each in asked:
            holder(store, each)
        with processors.asleep():
            time.sleep(4.5)
        wait_for_states(store, {"completed": len(asked)}, LONG)
        processors.stop()
    assert {row["crash_count"] for row in rows(store, MESSAGES)} == {0}
    assert [row["outcome"] for row in rows(store, ATTEMPTS)] == ["completed"] * len(asked)


@pytest.mark.slow
@pytest.mark.parametrize("grace", [0, 1])
@pytest.mark.one_store
def test_sigterm_releases_what_runs_and_counts_nothing(
    settings: Settings, store: Store, grace: int
) -> None:
    with processing(settings, 1, grace_seconds=grace) as processors:
        asked = [ask(store, agent, "!sleep 600\n!say late")[0] for agent in AGENTS[:6]]
        for each in asked:
            holder(store, each)
        processors.stop()
    messages = rows(store, MESSAGES)
    assert {row["status"] for row in messages} == {"pending"}
    assert {(row["retry_count"], row["crash_count"]) for row in messages} == {(0, 0)}
    attempts = rows(store, ATTEMPTS)
    assert [row["outcome"] for row in attempts] == ["released"] * len(asked)
    assert rows(store, RESPONSES) == []


@pytest.mark.slow
@pytest.mark.one_store
def test_sigterm_lets_a_run_end_within_the_grace(settings: Settings, store: Store) -> None:
    with processing(settings, 1, grace_seconds=30) as processors:
        (asked,) = ask(store, AGENTS[0], "!sleep 1\n!say in time")
        holder(store, asked)
        processors.stop()
    assert [row["message"] for row in rows(store, RESPONSES)] == ["in time"]
    assert [row["outcome"] for row in rows(store, ATTEMPTS)] == ["completed"]


@pytest.mark.slow
@pytest.mark.one_store
def test_a_message_that_kills_its_processor_is_dead_in_the_end_and_others_go_on(
    settings: Settings, store: Store
) -> None:
    # One run at a time: what runs beside the deadly one dies with its processor, and counts it.
    with processing(settings, 2, max_crashes=2, max_runs=1) as processors:
        wait_for_workers(store, 2)
        (deadly,) = ask(store, AGENTS[0], "!crash")
        (after,) = ask(store, AGENTS[0], "hello", prefix="after")
        others = [ask(store, agent, "hello")[0] for agent in AGENTS[1:]]

        def over() -> bool:
            processors.end_leases_of_the_dead(store)
            processors.keep(2)
            states = {row["message_id"]: row["status"] for row in rows(store, MESSAGES)}
            return "pending" not in states.values() and "processing" not in states.values()

        until(over, "nothing waits any more", LONG)
        processors.stop()
    messages = {row["message_id"]: row for row in rows(store, MESSAGES)}
    assert messages[deadly]["status"] == "dead"
    assert messages[deadly]["crash_count"] == 2
    assert {messages[each]["status"] for each in others} == {"completed"}
    assert messages[after]["status"] in ("completed", "dead")
    notices = [row["message"] for row in rows(store, RESPONSES) if row["message_id"] == deadly]
    assert len(notices) == 1
    assert "could not answer" in notices[0]
