"""A room is read from its end, from a number or from a moment, and no post is missed or doubled."""

from __future__ import annotations

import pytest
from sqlalchemy import insert

from bullpen.core.clock import MINUTE
from bullpen.core.inspect.rooms import last_posted_at, newest_posts, posts_since
from bullpen.core.models import CHAT_MESSAGES
from bullpen.core.store.base import Store
from tests.answers.talk import team
from tests.stores import START

END = 1 << 50


@pytest.fixture
def store(store: Store) -> Store:
    """A store with two teams."""
    team(store, "a", "b")
    team(store, "c", id="ops")
    return store


def post(store: Store, at: int, text: str, room: str = "dev") -> None:
    """Somebody said this at this moment."""
    row = {"team_id": room, "from_agent": "Ada", "message": text, "created_at": at}
    with store.engine.begin() as connection:
        connection.execute(insert(CHAT_MESSAGES).values(row))


def since(store: Store, at: int = -1, after: int = 0, upto: int = END, limit: int = 100) -> str:
    """What is found, as one text."""
    with store.read() as tx:
        found = posts_since(tx, "dev", since_id=after, since=at, upto=upto, limit=limit)
    return " ".join(each.message for each in found)


def test_without_a_beginning_the_newest_come_first(store: Store) -> None:
    for number in range(4):
        post(store, START + number, str(number))
    post(store, START, "elsewhere", "ops")
    with store.read() as tx:
        found = newest_posts(tx, "dev", 3)
    assert [each.message for each in found] == ["3", "2", "1"]
    assert {each.team_id for each in found} == {"dev"}


def test_since_a_number_is_what_has_a_higher_one(store: Store) -> None:
    for number in range(1, 5):
        post(store, START, str(number))
    with store.read() as tx:
        ids = [each.id for each in newest_posts(tx, "dev", 9)][::-1]
    assert since(store, after=ids[1]) == "3 4"
    assert since(store, after=ids[0], limit=2) == "2 3"
    assert since(store, after=ids[0], upto=ids[1]) == "2"
    assert since(store, after=ids[3]) == ""


def test_since_a_moment_is_what_came_after_it(store: Store) -> None:
    for number in range(5):
        post(store, START + number * MINUTE, str(number))
    assert since(store, START + 2 * MINUTE) == "3 4"
    assert since(store, START + 2 * MINUTE - 1) == "2 3 4"
    assert since(store, 0) == "0 1 2 3 4"
    assert since(store, START + 5 * MINUTE) == ""
    assert since(store, START, limit=2) == "1 2"


def test_a_post_whose_moment_is_earlier_than_its_number_says_is_found(store: Store) -> None:
    post(store, START, "old")
    post(store, START + 100, "quick")
    post(store, START + 50, "was under way for longer")
    post(store, START + 200, "last")
    assert since(store, START + 60) == "quick last"
    assert since(store, START + 49) == "quick was under way for longer last"


def test_both_a_number_and_a_moment_hold_at_once(store: Store) -> None:
    for number in range(4):
        post(store, START + number, str(number))
    with store.read() as tx:
        second = newest_posts(tx, "dev", 3)[-1].id
    assert since(store, START + 2, after=second) == "3"
    assert since(store, START, after=second) == "2 3"


def test_when_somebody_last_spoke_is_told_of_rooms_that_exist(store: Store) -> None:
    post(store, START, "first")
    post(store, START + 7, "last")
    post(store, START + 9, "disbanded", "gone")
    with store.read() as tx:
        assert last_posted_at(tx) == {"dev": START + 7}
