"""Whatever is done to the queue, it does what the model says: on both databases."""

from __future__ import annotations

import os
from contextlib import closing

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from hypothesis.stateful import run_state_machine_as_test

from bullpen.core.settings import Durability
from tests.model.audit import Reader
from tests.model.queue_machine import QueueMachine
from tests.stores import Stores

TIMES = float(os.environ.get("BULLPEN_TEST_EXAMPLES") or 1)
"""How much longer than usual to look."""

EXAMPLES = {"sqlite": 120, "postgresql": 30}
STEPS = 40


# A failing history is made short before it is shown, which may take five minutes.
@pytest.mark.slow
@pytest.mark.timeout(600 + 300 * TIMES)
def test_every_history_of_the_queue_is_as_the_model_says(stores: Stores, kind: str) -> None:
    made = stores.settings(kind, max_crashes=3, claim_limit=4, durability=Durability.FAST)
    with stores.opened(made) as store, closing(Reader(store)) as reader:

        class Machine(QueueMachine):
            def __init__(self) -> None:
                super().__init__(store, reader)

        run_state_machine_as_test(
            Machine,
            settings=hypothesis_settings(
                max_examples=max(1, round(EXAMPLES[kind] * TIMES)),
                stateful_step_count=STEPS,
                deadline=None,
                print_blob=True,
                report_multiple_bugs=False,
                suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
            ),
        )
