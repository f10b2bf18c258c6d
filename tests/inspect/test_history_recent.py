"""What was said last is found by who said it, to whom, and when."""

from __future__ import annotations

import pytest

from bullpen.core.clock import HOUR, SECOND
from bullpen.core.errors import BadText
from bullpen.core.inspect.history import HistoryFilter, list_history
from bullpen.core.inspect.rooms import list_posts
from bullpen.core.intake import post_in_room
from bullpen.core.store.base import Store
from tests.answers.talk import answer, team, write
from tests.conformance.verbs import hire, to_archive
from tests.stores import FakeClock

BOB = {"sender": "Bob", "sender_id": "U2"}


def said(store: Store, since: int | None = None, limit: int = 100, **wanted: str) -> list[str]:
    """The texts that are found."""
    with store.read() as tx:
        return [each.content for each in list_history(tx, HistoryFilter(**wanted), since, limit)]


@pytest.fixture
def talked(store: Store, clock: FakeClock) -> str:
    """Ada and Bob had answers from two agents, an hour apart; gives Bob's message."""
    hire(store)
    hire(store, "reviewer")
    write(store, "@coder one")
    answer(store, "coder", "first [@reviewer: look]")
    answer(store, "reviewer", "looked")
    clock.advance(HOUR)
    bobs = write(store, "@reviewer two", **BOB)
    answer(store, "reviewer", "second")
    return bobs


def test_the_newest_comes_last(store: Store, talked: str) -> None:
    everything = said(store)
    assert everything[0] == "one"
    assert everything[-2:] == ["two", "second"]
    assert said(store, limit=2) == ["two", "second"]


def test_it_is_found_by_agent(store: Store, talked: str) -> None:
    assert "two" not in said(store, agent="coder")
    assert said(store, agent="reviewer")[-2:] == ["two", "second"]
    assert said(store, agent="nobody") == []


def test_a_person_is_found_by_name_and_id_with_the_answers(store: Store, talked: str) -> None:
    assert said(store, person="Bob") == said(store, person="U2") == ["two", "second"]
    assert said(store, person="Ada")[0] == "one"
    assert "two" not in said(store, person="Ada")
    assert said(store, person="Bob", agent="coder") == []
    to_archive(store, talked)
    assert said(store, person="U2") == ["two", "second"]


def test_it_is_found_from_a_moment_on(store: Store, clock: FakeClock, talked: str) -> None:
    assert said(store, since=clock.now()) == ["two", "second"]
    assert said(store, since=clock.now() + SECOND) == []
    assert len(said(store, since=clock.now() - HOUR)) > 4
    assert said(store, since=clock.now(), limit=1) == ["second"]


def test_a_room_is_listed_by_itself(store: Store, clock: FakeClock) -> None:
    team(store, "coder", "reviewer")
    team(store, "writer", id="press")
    with store.write() as tx:
        post_in_room(tx, "dev", "early", "Ada")
        post_in_room(tx, "press", "elsewhere", "Ada")
    clock.advance(HOUR)
    with store.write() as tx:
        post_in_room(tx, "dev", "late", "Bob")

    def posted(author: str | None = None, since: int | None = None, limit: int = 9) -> list[str]:
        with store.read() as tx:
            return [each.message for each in list_posts(tx, "dev", author, since, limit)]

    assert posted() == ["early", "late"]
    assert posted(limit=1) == ["late"]
    assert posted("Ada") == ["early"]
    assert posted(since=clock.now()) == ["late"]


def test_what_no_text_can_be_is_refused(store: Store) -> None:
    with pytest.raises(BadText):
        said(store, person="a\0")
