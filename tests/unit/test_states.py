"""The tables of moves."""

from __future__ import annotations

import ast
from pathlib import Path

import bullpen
from bullpen.cli.queue_actions import OPEN_STATES
from bullpen.core.models import whole_schema
from bullpen.core.states import (
    ARCHIVED_STATES,
    LANE_STATES,
    MESSAGE_STATES,
    NEEDS_PERSON_STATES,
    RESPONSE_STATES,
    TERMINAL_STATES,
    UNDELIVERED_STATES,
    UNFINISHED_STATES,
    LaneState,
    MessageState,
    ResponseState,
    source_states,
)

PACKAGE = Path(str(bullpen.__file__)).parent


def test_every_state_stands_in_its_table() -> None:
    assert set(MESSAGE_STATES) == set(MessageState)
    assert set(RESPONSE_STATES) == set(ResponseState)
    assert set(LANE_STATES) == set(LaneState)


def test_every_state_has_words_for_people() -> None:
    for table in (MESSAGE_STATES, RESPONSE_STATES, LANE_STATES):
        labels = [info.label for info in table.values()]
        assert all(labels)
        assert len(set(labels)) == len(labels)


def test_the_partial_indexes_hold_the_states_that_are_looked_for_with_them() -> None:
    schema = whole_schema()
    conditions = {
        str(index.dialect_options["sqlite"]["where"])
        for table in (schema.tables["messages"], schema.tables["responses"])
        for index in table.indexes
    }
    for states in (NEEDS_PERSON_STATES, ARCHIVED_STATES, UNDELIVERED_STATES):
        names = ", ".join(f"'{state}'" for state in states)
        assert f"status IN ({names})" in conditions


def test_no_module_lists_states_that_the_tables_list() -> None:
    """`OPEN_STATES` has the states of the table, in an order of its own."""
    found = {
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Tuple | ast.List | ast.Set) and len(_states(node)) > 1
        if path.name != "states.py"
    }
    assert {each.partition(":")[0] for each in found} == {"cli/queue_actions.py"}, found
    assert len(found) == 1, found
    assert set(OPEN_STATES) == set(UNFINISHED_STATES)


def _states(node: ast.Tuple | ast.List | ast.Set) -> list[str]:
    return [
        each.attr
        for each in node.elts
        if isinstance(each, ast.Attribute)
        and isinstance(each.value, ast.Name)
        and each.value.id in ("MessageState", "ResponseState", "LaneState")
    ]


def test_no_state_moves_to_itself() -> None:
    assert not [state for state, info in MESSAGE_STATES.items() if state in info.moves_to]
    assert not [state for state, info in RESPONSE_STATES.items() if state in info.moves_to]
    assert not [state for state, info in LANE_STATES.items() if state in info.moves_to]


def test_every_state_but_the_first_can_be_reached() -> None:
    assert all(source_states(state) for state in MessageState)
    assert set().union(*(info.moves_to for info in RESPONSE_STATES.values())) == set(ResponseState)
    assert set().union(*(info.moves_to for info in LANE_STATES.values())) == set(LaneState)


def test_what_is_completed_or_acked_never_moves_again() -> None:
    assert MESSAGE_STATES[MessageState.COMPLETED].moves_to == frozenset()
    assert RESPONSE_STATES[ResponseState.ACKED].moves_to == frozenset()


def test_what_is_final_moves_only_back_to_waiting() -> None:
    for state in TERMINAL_STATES:
        assert MESSAGE_STATES[state].moves_to <= {MessageState.PENDING}


def test_the_dead_are_never_archived() -> None:
    assert set(TERMINAL_STATES) - {MessageState.DEAD} == set(ARCHIVED_STATES)


def test_only_a_running_message_completes_and_only_a_waiting_one_runs() -> None:
    assert source_states(MessageState.COMPLETED) == (MessageState.PROCESSING,)
    assert source_states(MessageState.PROCESSING) == (MessageState.PENDING,)
