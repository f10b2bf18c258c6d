"""What was said is listed from its end, or from a number on, for those whom the reader may see."""

from __future__ import annotations

import pytest
from sqlalchemy import insert

from bullpen.core.errors import BadText
from bullpen.core.inspect.history import history_since, newest_history
from bullpen.core.models import AGENT_MESSAGES
from bullpen.core.store.base import Store

END = 1 << 50


@pytest.fixture
def store(store: Store) -> Store:
    """A store in which three agents were told six things, in turn."""
    with store.engine.begin() as connection:
        for number in range(6):
            row = {"agent_id": "abc"[number % 3], "role": "user", "channel": "cli"}
            row |= {"sender": "ada", "message_id": f"m{number}", "content": str(number)}
            connection.execute(insert(AGENT_MESSAGES).values(created_at=number, **row))
    return store


def newest(store: Store, agents: list[str] | None, limit: int = 100) -> str:
    """What is found, as one text."""
    with store.read() as tx:
        return " ".join(each.content for each in newest_history(tx, agents, limit))


def after(store: Store, agents: list[str] | None, first: int, limit: int = 100) -> str:
    """What was said after so many of all."""
    with store.read() as tx:
        start = newest_history(tx, None, 100)[-1].id - 1
        found = history_since(tx, agents, start + first, END, limit)
    return " ".join(each.content for each in found)


def test_the_newest_come_first(store: Store) -> None:
    assert newest(store, None) == "5 4 3 2 1 0"
    assert newest(store, None, 2) == "5 4"
    assert newest(store, ["b"]) == "4 1"
    assert newest(store, ["c", "a"], 3) == "5 3 2"


def test_from_a_number_on_the_oldest_come_first(store: Store) -> None:
    assert after(store, None, 0) == "0 1 2 3 4 5"
    assert after(store, None, 4) == "4 5"
    assert after(store, None, 1, 2) == "1 2"
    assert after(store, ["b"], 2) == "4"
    assert after(store, ["c", "a"], 1) == "2 3 5"
    assert after(store, None, 6) == ""


def test_what_is_not_settled_yet_is_left_for_the_next_time(store: Store) -> None:
    with store.read() as tx:
        third = newest_history(tx, None, 4)[-1].id
        assert [each.content for each in history_since(tx, None, 0, third, 9)] == ["0", "1", "2"]


def test_nobody_has_said_nothing(store: Store) -> None:
    assert newest(store, []) == ""
    assert newest(store, ["nobody"]) == ""


def test_an_id_that_no_database_keeps_is_refused(store: Store) -> None:
    with pytest.raises(BadText):
        newest(store, ["a\0"])
    with pytest.raises(BadText):
        newest(store, ["\ud800", "a"])
