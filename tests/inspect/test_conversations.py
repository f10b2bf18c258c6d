"""Conversations in a list: each by its beginning."""

from __future__ import annotations

from bullpen.core.inspect.conversations import (
    ConversationState,
    ConversationSummary,
    list_conversations,
)
from bullpen.core.message import Usage
from bullpen.core.store.base import Store
from tests.answers.talk import answer, write
from tests.conformance.verbs import hire


def listed(
    store: Store, since: int | None = None, limit: int = 10, wanted: dict[str, str] | None = None
) -> list[ConversationSummary]:
    """A page of them."""
    with store.read() as tx:
        return list_conversations(tx, wanted or {}, since, limit)


def test_each_is_there_once_with_what_became_of_all_of_it(store: Store) -> None:
    hire(store)
    hire(store, "reviewer")
    first = write(store, "@coder one")
    answer(store, "coder", "[@reviewer: read it]", usage=Usage(cost=0.5))
    second = write(store, "@reviewer two")
    newest, oldest = listed(store)
    assert (newest.first.message_id, newest.messages, newest.cost) == (second, 1, 0.0)
    assert (oldest.first.message_id, oldest.messages, oldest.cost) == (first, 2, 0.5)
    assert (newest.stand, oldest.stand) == (
        ConversationState.UNDER_WAY,
        ConversationState.UNDER_WAY,
    )
    # One run answers none of another conversation's handoffs.
    answer(store, "reviewer", "fine")
    answer(store, "reviewer", "fine")
    assert [each.stand for each in listed(store)] == [
        ConversationState.AT_REST,
        ConversationState.AT_REST,
    ]


def test_they_are_found_by_what_they_began_with(store: Store) -> None:
    hire(store)
    hire(store, "reviewer")
    ids = [
        write(store, "@coder one"),
        write(store, "@reviewer two", channel="web"),
        write(store, "@coder three", sender_id="U2"),
    ]

    def found(**wanted: str) -> list[str]:
        return [each.first.message_id for each in listed(store, wanted=wanted)]

    assert found() == ids[::-1]
    assert found(agent="reviewer") == [ids[1]]
    assert found(channel="slack") == [ids[2], ids[0]]
    assert found(channel="slack", sender_id="U2") == [ids[2]]
    assert found(agent="nobody") == []


def test_a_page_follows_the_other(store: Store) -> None:
    hire(store)
    ids = [write(store, f"@coder {number}") for number in range(5)]
    seen: list[str] = []
    since = 0
    while page := listed(store, since, 2):
        seen += [each.first.message_id for each in page]
        since = page[-1].first.id
        assert len(seen) <= len(ids)
    assert seen == ids


def test_nothing_is_shown_beyond_what_is_settled(store: Store) -> None:
    hire(store)
    first, _ = write(store, "@coder one"), write(store, "@coder two")
    (_, oldest) = listed(store)
    with store.read() as tx:
        found = list_conversations(tx, {}, 0, 10, upto=oldest.first.id)
    assert [each.first.message_id for each in found] == [first]
