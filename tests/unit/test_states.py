"""The tables of moves."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import pytest

from bullpen.core.errors import BadState
from bullpen.core.states import (
    ARCHIVED,
    FINAL,
    LANE_MOVES,
    MESSAGE_MOVES,
    RESPONSE_MOVES,
    LaneState,
    MessageState,
    ResponseState,
    lane_state,
    message_state,
    response_state,
    sources,
)

Parse = Callable[[str], StrEnum]
PARSERS: list[tuple[type[StrEnum], Parse]] = [
    (MessageState, message_state),
    (ResponseState, response_state),
    (LaneState, lane_state),
]


def test_every_state_stands_in_its_table() -> None:
    assert set(MESSAGE_MOVES) == set(MessageState)
    assert set(RESPONSE_MOVES) == set(ResponseState)
    assert set(LANE_MOVES) == set(LaneState)


def test_no_state_moves_to_itself() -> None:
    assert not [state for state, to in MESSAGE_MOVES.items() if state in to]
    assert not [state for state, to in RESPONSE_MOVES.items() if state in to]
    assert not [state for state, to in LANE_MOVES.items() if state in to]


def test_every_state_but_the_first_can_be_reached() -> None:
    assert all(sources(state) for state in MessageState)
    assert set().union(*RESPONSE_MOVES.values()) == set(ResponseState)
    assert set().union(*LANE_MOVES.values()) == set(LaneState)


def test_what_is_completed_or_acked_never_moves_again() -> None:
    assert MESSAGE_MOVES[MessageState.COMPLETED] == frozenset()
    assert RESPONSE_MOVES[ResponseState.ACKED] == frozenset()


def test_what_is_final_moves_only_back_to_waiting() -> None:
    for state in FINAL:
        assert MESSAGE_MOVES[state] <= {MessageState.PENDING}


def test_the_dead_are_never_archived() -> None:
    assert FINAL - {MessageState.DEAD} == set(ARCHIVED)


def test_only_a_running_message_completes_and_only_a_waiting_one_runs() -> None:
    assert sources(MessageState.COMPLETED) == (MessageState.PROCESSING,)
    assert sources(MessageState.PROCESSING) == (MessageState.PENDING,)


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
