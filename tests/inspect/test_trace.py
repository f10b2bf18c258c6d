"""trace: nothing that happened in a conversation is missing from it."""

from __future__ import annotations

import pytest

from bullpen.core.clock import SECOND
from bullpen.core.errors import BadText, NotFound
from bullpen.core.inspect import trace as module
from bullpen.core.inspect.conversations import (
    ConversationState,
    count_messages,
    list_conversation_agents,
)
from bullpen.core.inspect.trace import Trace, trace
from bullpen.core.intake import post_in_room
from bullpen.core.message import Answer, Priority, Usage
from bullpen.core.outbox.write import send_to_person
from bullpen.core.queue.lanes import LanePolicy, Ordering
from bullpen.core.queue.manage import hold
from bullpen.core.store.base import Store
from tests.answers.talk import answer, team, write
from tests.conformance.verbs import do, failed, hire, send, take, to_archive
from tests.stores import FakeClock


def look(store: Store, conversation: str) -> Trace:
    """All of a conversation."""
    with store.read() as tx:
        return trace(tx, conversation)


def test_the_times_are_those_of_the_last_run(store: Store, clock: FakeClock) -> None:
    hire(store)
    root = write(store, "@coder hello")
    began = clock.now()
    clock.advance(SECOND)
    failed(store, take(store, "coder").token, retry_after=0)
    clock.advance(SECOND)
    claim = take(store, "coder")
    (step,) = look(store, root).steps
    assert (step.claimed_at, step.started_at, step.finished_at) == (began + 2 * SECOND, None, None)
    clock.advance(SECOND)
    failed(store, claim.token, retry_after=0)
    (step,) = look(store, root).steps
    assert (step.claimed_at, step.finished_at) == (began + 2 * SECOND, began + 3 * SECOND)
    assert [each.finished_at - began for each in look(store, root).attempts] == [
        1 * SECOND,
        3 * SECOND,
    ]


def test_a_run_for_several_conversations_is_found_from_each(store: Store, clock: FakeClock) -> None:
    hire(store)
    hire(store, "other")
    beside = write(store, "@other three")
    first, second = write(store, "@coder one"), write(store, "@coder two")
    clock.advance(SECOND)
    answer(store, "coder", "both")
    answer(store, "other", "mine")  # at the same moment
    assert [step.answered_with for step in look(store, second).steps] == [first]
    assert [step.answered_with for step in look(store, first).steps] == [None]
    assert [step.answered_with for step in look(store, beside).steps] == [None]
    assert look(store, second).attempts == ()


def test_a_run_is_found_by_its_own_moment(store: Store, clock: FakeClock) -> None:
    hire(store, policy=LanePolicy(ordering=Ordering.PRIORITY))
    failed_before = write(store, "@coder one")
    failed(store, take(store, "coder").token, retry_after=0)
    clock.advance(SECOND)
    urgent = write(store, "@coder two", priority=Priority.CRITICAL)
    along = write(store, "@coder three")
    answer(store, "coder", "all of it")
    assert [step.answered_with for step in look(store, along).steps] == [urgent]
    assert look(store, failed_before).attempts != ()


def test_a_room_post_without_a_message_of_its_own_has_its_conversation(store: Store) -> None:
    team(store, "coder", "reviewer")
    with store.write() as tx:
        posted = post_in_room(tx, "dev", "who is there?", "Ada")
    answer(store, "coder", "[@reviewer: you?]")
    found = look(store, posted.conversation_id)
    assert {step.message.agent for step in found.steps} == {"coder", "reviewer"}
    assert [(each.from_agent, each.agent) for each in found.handoffs] == [("coder", "reviewer")]
    assert found.stand is ConversationState.UNDER_WAY


def test_what_an_agent_writes_of_its_own_accord_is_a_conversation(store: Store) -> None:
    with store.write() as tx:
        name = send_to_person(
            tx, Answer(message="hear this"), channel="slack", sender="Ada", agent="coder"
        )
    found = look(store, name)
    assert [each.message for each in found.responses] == ["hear this"]
    assert (found.stand, found.steps) == (ConversationState.AT_REST, ())
    assert found.agents == {"coder"}


def test_half_of_it_in_the_archive_is_all_of_it_in_order(store: Store) -> None:
    hire(store)
    hire(store, "reviewer")
    root = write(store, "@coder hello")
    answer(store, "coder", "[@reviewer: one] [@reviewer: two]")
    to_archive(store, root)
    found = look(store, root)
    assert [step.archived for step in found.steps] == [True, False, False]
    assert [step.message.message for step in found.steps] == ["hello", "one", "two"]
    assert found.totals.messages == 3
    assert found.stand is ConversationState.UNDER_WAY
    with store.read() as tx:
        assert sorted(list_conversation_agents(tx, root)) == ["coder", "reviewer"]


def test_messages_of_one_state_count_in_the_archive_and_beside_it(store: Store) -> None:
    hire(store)
    hire(store, "reviewer")
    root = write(store, "@coder hello")
    answer(store, "coder", "[@reviewer: one]")
    to_archive(store, root)
    answer(store, "reviewer", "done")
    with store.read() as tx:
        counts = count_messages(tx, root)
    assert counts.by_state == {"completed": 2}
    assert counts.stand is ConversationState.AT_REST


def test_the_whole_cost_counts_of_failures_too(store: Store) -> None:
    hire(store)
    root = write(store, "@coder hello")
    failed(store, take(store, "coder").token, retry_after=0)
    used = Usage(input_tokens=5, output_tokens=3, cost=0.125)
    answer(store, "coder", "done", usage=used)
    totals = look(store, root).totals
    assert (totals.attempts, totals.cost) == (2, 0.125)
    assert (totals.input_tokens, totals.output_tokens) == (5, 3)


def test_what_waits_for_a_person_is_held_only_if_nothing_else_moves(store: Store) -> None:
    hire(store)
    hire(store, "reviewer")
    root = write(store, "@coder hello")
    answer(store, "coder", "[@reviewer: one] [@reviewer: two]")
    first, second = (each.message_id for each in look(store, root).handoffs)
    do(store, hold, first, "wait")
    with store.read() as tx:
        assert count_messages(tx, root).stand is ConversationState.UNDER_WAY
    do(store, hold, second, "wait")
    with store.read() as tx:
        assert count_messages(tx, root).stand is ConversationState.HELD
        assert count_messages(tx, root).by_state == {"completed": 1, "held": 2}


def test_a_very_long_one_is_cut_and_says_how_long_it_is(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    hire(store)
    root = write(store, "@coder hello")
    for number in range(5):
        send(store, f"{number}", conversation_id=root, from_agent="reviewer")
    monkeypatch.setattr(module, "MAX_ROWS", 3)
    found = look(store, root)
    assert [step.message.message for step in found.steps] == ["hello", "0", "1"]
    assert found.totals.messages == 6


def test_what_does_not_exist_or_cannot_is_an_error(store: Store) -> None:
    with store.read() as tx:
        with pytest.raises(NotFound):
            trace(tx, "nothing")
        for odd in ("\0", "\ud800"):
            with pytest.raises(BadText):
                trace(tx, odd)
            with pytest.raises(BadText):
                list_conversation_agents(tx, odd)
        assert list_conversation_agents(tx, "nothing") == []
