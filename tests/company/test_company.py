"""Three processors, twenty agents, two thousand messages with handoffs."""

from __future__ import annotations

import pytest

from bullpen.core.models import ATTEMPTS, MESSAGES
from bullpen.core.queue.lanes import Batching, LanePolicy
from bullpen.core.queue.manage import cancel
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from tests.company.office import processors, wait_until_over, write
from tests.conformance.verbs import do, events, hire, responses, rows, statuses
from tests.crash.processors import wait_for_workers
from tests.processor.working import eventually

AGENTS = 20
ASKED = 1000
PROCESSORS = 3
RUNS = 4
AT_ONCE = PROCESSORS * RUNS


@pytest.mark.slow
def test_each_is_answered_once_in_order_by_one_run_at_a_time_and_all_processors_work(
    settings: Settings, store: Store
) -> None:
    for number in range(AGENTS):
        hire(store, f"a{number}", LanePolicy(batching=Batching.ONE))
    for number in range(AT_ONCE):
        hire(store, f"w{number}")
    with processors(settings, PROCESSORS, max_runs=RUNS):
        wait_for_workers(store, PROCESSORS)
        # So many can run at once only if none of the processors is idle.
        busy = [write(store, f"@w{number} !sleep 3600") for number in range(AT_ONCE)]
        eventually(lambda: statuses(store) == {"processing": AT_ONCE}, "all of them work")
        for each in busy:
            do(store, cancel, each)
        for number in range(ASKED):
            to, mate = number % AGENTS, (number * 7 + 1) % AGENTS
            mate = mate if mate != to else (mate + 1) % AGENTS
            write(store, f"@a{to} !say n{number} [@a{mate}: !say m{number}]")
        assert wait_until_over(store) == {"completed": 2 * ASKED, "cancelled": AT_ONCE}
    attempts = [row for row in rows(store, ATTEMPTS) if row["message_id"] not in busy]
    assert {row["outcome"] for row in attempts} == {"completed"}
    said = [row["message"] for row in responses(store)]
    assert sorted(each for each in said if each.startswith("m")) == sorted(
        f"m{number}" for number in range(ASKED)
    )
    assert len(said) == 2 * ASKED
    roots = {row["message_id"]: row["id"] for row in rows(store, MESSAGES) if row["hop"] == 0}
    for number in range(AGENTS):
        mine = [row for row in attempts if row["agent"] == f"a{number}"]
        asked = [roots[row["message_id"]] for row in mine if row["message_id"] in roots]
        assert asked == sorted(asked)
        # Both are written while the lane is locked: their order is that of the lane.
        steps = [row["type"] for row in events(store) if row["agent"] == f"a{number}"]
        steps = [each for each in steps if each in ("message_received", "chain_step_done")]
        assert steps == ["message_received", "chain_step_done"] * len(mine)
