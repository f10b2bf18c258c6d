"""Whatever wakes it, whatever is changed and however clocks are set: never above rate or budget."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bullpen.core.clock import DAY, HOUR, MINUTE, SECOND, get_zone
from bullpen.core.heartbeats.model import ActiveHours, HeartbeatState
from bullpen.core.settings import Durability
from bullpen.core.store.base import Store
from tests.answers.talk import said
from tests.conformance.verbs import failed, try_claim
from tests.heartbeats.hearts import awake, beats, see, turn, wait
from tests.stores import FakeClock, Stores

EXAMPLES = {"sqlite": 40, "postgresql": 10}
BUDGET = 6
ANSWERS = ("HEARTBEAT_OK", "The build is red.", None, "!")
"""What it says; nothing at all, or that its run failed."""

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("wait"), st.integers(1, 200)),
        st.tuples(st.just("wait"), st.integers(1, 3 * 24 * 60)),
        st.tuples(st.just("every"), st.integers(1, 300)),
        st.tuples(st.just("hours"), st.integers(0, 23)),
        st.tuples(st.sampled_from(["on", "off", "back", "forward"]), st.integers(1, 36 * 60)),
        st.tuples(st.just("answer"), st.integers(0, len(ANSWERS) - 1)),
    ),
    min_size=10,
    max_size=60,
)


def step(store: Store, clock: FakeClock, what: str, number: int) -> None:
    """Something happens."""
    match what:
        case "wait":
            for _ in range(4):
                wait(store, clock, number * MINUTE // 4)
        case "every":
            turn(store, every=number * MINUTE)
        case "hours":
            turn(store, hours=ActiveHours(number * 60, (number * 60 + 600) % 1440))
        case "on" | "off":
            turn(store, on=what == "on")
        case "back" | "forward":
            wait(store, clock, number * MINUTE * (1 if what == "forward" else -1))
        case "answer":
            found = try_claim(store)
            text = ANSWERS[number]
            if found is not None and text == "!":
                failed(store, found.token)
            elif found is not None and text is not None:
                said(store, found, text)


@pytest.mark.slow
def test_it_beats_never_sooner_nor_more_often_than_it_may(stores: Stores, kind: str) -> None:
    made = stores.settings(kind, durability=Durability.FAST, time_zone="Europe/Berlin")
    clock = FakeClock()
    with ExitStack() as stack:
        store = stack.enter_context(stores.opened(made, clock))
        other = stack.enter_context(stores.opened(made, clock))
        awake(store, every=HOUR, budget=BUDGET, max_silent=0)

        @settings(
            max_examples=EXAMPLES[kind], deadline=None, suppress_health_check=list(HealthCheck)
        )
        @given(STEPS)
        def look(steps: list[tuple[str, int]]) -> None:
            clock.advance(30 * DAY)
            turn(store, on=True, every=HOUR, hours=None)
            known = len(beats(store))
            for what, number in steps:
                before = {row["id"] for row in beats(store)}
                step(store, clock, what, number)
                wait(other, clock, 0)
                every = see(store).every
                sent = [row for row in beats(store) if row["message_id"] is not None]
                fresh = [row for row in sent if row["id"] not in before]
                for row in fresh:
                    place = sent.index(row)
                    if place:
                        assert row["fired_at"] - sent[place - 1]["fired_at"] >= every
                if see(store).state is HeartbeatState.PAUSED:
                    assert not fresh or what == "answer"
            sent = [row for row in beats(store)[known:] if row["message_id"] is not None]
            for first, last in zip(sent, sent[BUDGET:], strict=False):
                # So many and one more do not fit into any day, however long its night.
                assert _day(first["fired_at"]) != _day(last["fired_at"])

        look()


def _day(moment: int) -> str:
    return datetime.fromtimestamp(moment / SECOND, get_zone("Europe/Berlin")).date().isoformat()
