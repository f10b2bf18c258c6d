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
    assert _drawn() == real


def test_every_code_is_of_one_class_only() -> None:
    doubled = [code for code, count in Counter(kind.code for kind in ALL).items() if count > 1]
    assert doubled == []
    assert all("code" in vars(kind) for kind in ALL)


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
