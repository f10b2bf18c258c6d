"""The tree of errors is the one that is drawn, and each error says what to do."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from bullpen.core import errors
from bullpen.core.errors import BullpenError, DuplicateMessage


def _tree(kind: type[BullpenError]) -> list[type[BullpenError]]:
    """The class and all below it."""
    return [kind, *(each for child in kind.__subclasses__() for each in _tree(child))]


ALL = _tree(BullpenError)

PUBLISHED_CODES = """
error bad_input bad_text text_too_long bad_delay deadline_passed bad_deadline bad_claim bad_name
bad_team bad_provider bad_schedule bad_place bad_heartbeat bad_key bad_request
not_json body_too_large bad_setting setting_fixed not_found unknown_agent unknown_team
unknown_provider unknown_message unknown_response unknown_recipient unknown_schedule unknown_key
unknown_file unknown_service conflict duplicate_message name_taken stale_token illegal_move
service_failed too_many in_the_way no_right no_access too_many_failures scope_too_small
out_of_reach foreign_host foreign_page unsafe_secret overloaded no_supervisor runs_already
unsafe_directory address_taken lane_error lane_full lane_closed lane_busy store_error store_busy
store_unavailable commit_unknown store_full store_read_only store_corrupt store_missing
backup_failed bad_backup schema_too_new schema_too_old
"""


def _drawn() -> dict[str, str | None]:
    """Each class of the drawing, and the one it hangs from."""
    parents: dict[str, str | None] = {}
    path: list[tuple[int, str]] = []
    for line in str(errors.__doc__).splitlines():
        found = re.match(r"^    ([ │├└─]*)([A-Z]\w+)", line)
        if found is None:
            continue
        depth, name = len(found[1]), found[2]
        path = [each for each in path if each[0] < depth]
        parents[name] = path[-1][1] if path else None
        path.append((depth, name))
    return parents


def test_the_tree_that_is_drawn_is_the_tree_that_is() -> None:
    real = {
        kind.__name__: None if kind is BullpenError else kind.__bases__[0].__name__ for kind in ALL
    }
    assert list(_drawn().items()) == list(real.items()), "the classes stand in another order"


def test_every_code_is_of_one_class_only() -> None:
    doubled = [code for code, count in Counter(kind.code for kind in ALL).items() if count > 1]
    assert doubled == []


def test_no_code_that_clients_know_is_renamed() -> None:
    assert set(PUBLISHED_CODES.split()) - {kind.code for kind in ALL} == set()


def test_every_error_has_a_code_an_exit_status_and_a_hint(subtests: pytest.Subtests) -> None:
    for kind in [each for each in ALL if each is not BullpenError]:
        with subtests.test(kind=kind):
            assert re.fullmatch(r"[a-z]+(_[a-z]+)*", kind.code)
            assert kind.exit_status in (1, 2, 3, 75)
            assert kind.hint.endswith(".")


def test_every_error_of_the_tree_is_documented(subtests: pytest.Subtests) -> None:
    for kind in ALL:
        with subtests.test(kind=kind):
            assert kind.__doc__


def test_a_hint_of_its_own_replaces_that_of_the_class() -> None:
    assert BullpenError("x", hint="do this").hint == "do this"
    assert errors.BadText("x").hint == errors.BadText.hint
    assert str(errors.BadText("what happened")) == "what happened"


def test_a_duplicate_carries_the_state_of_the_first() -> None:
    error = DuplicateMessage("mine-1", "processing")
    assert (error.message_id, error.status) == ("mine-1", "processing")
    assert "mine-1" in str(error)
    assert "processing" in str(error)
