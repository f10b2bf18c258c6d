"""The tables of moves."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import pytest

from bullpen.core.errors import BadState
from bullpen.core.states import (
    ARCHIVED_STATES,
    LANE_TRANSITIONS,
    MESSAGE_TRANSITIONS,
    RESPONSE_TRANSITIONS,
    TERMINAL_STATES,
    LaneState,
    MessageState,
    ResponseState,
    parse_lane_state,
    parse_message_state,
    parse_response_state,
    source_states,
)

Parse = Callable[[str], StrEnum]
PARSERS: list[tuple[type[StrEnum], Parse]] = [
    (MessageState, parse_message_state),
    (ResponseState, parse_response_state),
    (LaneState, parse_lane_state),
]


def test_every_state_stands_in_its_table() -> None:
    assert set(MESSAGE_TRANSITIONS) == set(MessageState)
    assert set(RESPONSE_TRANSITIONS) == set(ResponseState)
    assert set(LANE_TRANSITIONS) == set(LaneState)


def test_no_state_moves_to_itself() -> None:
    assert not [state for state, to in MESSAGE_TRANSITIONS.items() if state in to]
    assert not [state for state, to in RESPONSE_TRANSITIONS.items() if state in to]
    assert not [state for state, to in LANE_TRANSITIONS.items() if state in to]


def test_every_state_but_the_first_can_be_reached() -> None:
    assert all(source_states(state) for state in MessageState)
    assert set().union(*RESPONSE_TRANSITIONS.values()) == set(ResponseState)
    assert set().union(*LANE_TRANSITIONS.values()) == set(LaneState)


def test_what_is_completed_or_acked_never_moves_again() -> None:
    assert MESSAGE_TRANSITIONS[MessageState.COMPLETED] == frozenset()
    assert RESPONSE_TRANSITIONS[ResponseState.ACKED] == frozenset()


def test_what_is_final_moves_only_back_to_waiting() -> None:
    for state in TERMINAL_STATES:
        assert MESSAGE_TRANSITIONS[state] <= {MessageState.PENDING}


def test_the_dead_are_never_archived() -> None:
    assert TERMINAL_STATES - {MessageState.DEAD} == set(ARCHIVED_STATES)


def test_only_a_running_message_completes_and_only_a_waiting_one_runs() -> None:
    assert source_states(MessageState.COMPLETED) == (MessageState.PROCESSING,)
    assert source_states(MessageState.PROCESSING) == (MessageState.PENDING,)


@pytest.mark.parametrize(("kind", "parse"), PARSERS)
def test_every_state_is_read_from_its_name(kind: type[StrEnum], parse: Parse) -> None:
    assert [parse(state.value) for state in kind] == list(kind)


@pytest.mark.parametrize(("kind", "parse"), PARSERS)
@pytest.mark.parametrize("name", ["", "PENDING", "done", "pending ", "\0", "\ud800"])
def test_an_unknown_state_is_refused_with_the_states_that_exist(
    kind: type[StrEnum], parse: Parse, name: str
) -> None:
    with pytest.raises(BadState) as caught:
        parse(name)
    assert all(state.value in caught.value.hint for state in kind)
    assert caught.value.code == "bad_state"
    str(caught.value).encode()
