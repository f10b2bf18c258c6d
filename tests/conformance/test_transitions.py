"""The table of moves: what it does not allow is refused and changes nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bullpen.core.clock import MINUTE
from bullpen.core.errors import IllegalMove, UnknownMessage
from bullpen.core.message import ErrorKind
from bullpen.core.models import MESSAGES
from bullpen.core.queue.lanes import archive_lane, drain_lane, pause_lane, resume_lane
from bullpen.core.queue.manage import cancel, drop, hold, resume, retry
from bullpen.core.states import (
    LANE_STATES,
    TERMINAL_STATES,
    LaneState,
    MessageState,
    source_states,
)
from bullpen.core.store.base import Store
from bullpen.core.store.transaction import Transaction
from tests.conformance.verbs import (
    AGENT,
    do,
    done,
    failed,
    lane,
    lane_row,
    refused,
    rows,
    send,
    status,
    take,
    try_claim,
)
from tests.stores import FakeClock

M = MessageState
Verb = Callable[[Transaction, str], None]


def _hold(tx: Transaction, message_id: str) -> None:
    hold(tx, message_id, "wait")


RUNNING = {M.PROCESSING}
# What leads to a state is the table's; fail, and not a person's verb, is what moves a running one.
VERBS: dict[str, tuple[Verb, set[M], M | None]] = {
    "hold": (_hold, set(source_states(M.HELD)) - RUNNING, M.HELD),
    "let_go": (resume, set(source_states(M.PENDING)) - RUNNING - set(TERMINAL_STATES), M.PENDING),
    "cancel": (cancel, set(source_states(M.CANCELLED)), M.CANCELLED),
    "retry": (retry, set(source_states(M.PENDING)) & set(TERMINAL_STATES), M.PENDING),
    "drop": (drop, set(TERMINAL_STATES) - {M.COMPLETED}, None),
}


def _in_state(store: Store, clock: FakeClock, state: M) -> str:
    lane(store)
    sent = send(store, deadline=clock.now() + MINUTE)
    if state in (M.PROCESSING, M.COMPLETED, M.DEAD):
        token = take(store).token
        if state is M.COMPLETED:
            done(store, token)
        elif state is M.DEAD:
            failed(store, token, ErrorKind.PERMANENT)
    elif state is M.HELD:
        do(store, hold, sent, "wait")
    elif state is M.CANCELLED:
        do(store, cancel, sent)
    elif state is M.EXPIRED:
        clock.advance(MINUTE)
        assert try_claim(store) is None
    assert status(store, sent) == state
    return sent


@pytest.mark.parametrize("state", list(M))
@pytest.mark.parametrize("name", list(VERBS))
def test_a_verb_moves_from_the_states_of_the_table_and_from_no_other(
    store: Store, clock: FakeClock, name: str, state: MessageState
) -> None:
    verb, allowed, target = VERBS[name]
    sent = _in_state(store, clock, state)
    if state not in allowed:
        error = refused(store, IllegalMove, verb, sent)
        assert state.value in str(error)
        return
    do(store, verb, sent)
    found = [row["status"] for row in rows(store, MESSAGES)]
    assert found == ([] if target is None else [target.value])


@pytest.mark.parametrize("name", list(VERBS))
def test_an_unknown_message_is_not_moved(store: Store, name: str) -> None:
    refused(store, UnknownMessage, VERBS[name][0], "api_00000000")


LANE_VERBS: dict[LaneState, Callable[[Transaction, str], None]] = {
    LaneState.ACTIVE: resume_lane,
    LaneState.PAUSED: lambda tx, agent: pause_lane(tx, agent, "lunch"),
    LaneState.DRAINING: drain_lane,
    LaneState.ARCHIVED: archive_lane,
}


@pytest.mark.parametrize("target", list(LaneState))
@pytest.mark.parametrize("state", list(LaneState))
def test_a_lane_moves_as_its_table_says(store: Store, state: LaneState, target: LaneState) -> None:
    lane(store)
    if state is not LaneState.ACTIVE:
        do(store, LANE_VERBS[state], AGENT)
    if target is not state and target not in LANE_STATES[state].moves_to:
        refused(store, IllegalMove, LANE_VERBS[target], AGENT)
        return
    do(store, LANE_VERBS[target], AGENT)
    assert lane_row(store)["state"] == target
