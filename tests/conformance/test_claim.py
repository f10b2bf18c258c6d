"""claim: one run for each agent, the oldest first, and the lease that it comes with."""

from __future__ import annotations

import pytest

from bullpen.core.answers.leases import expire_leases
from bullpen.core.clock import SECOND
from bullpen.core.errors import UnknownAgent
from bullpen.core.message import NewMessage, ReplyTo
from bullpen.core.queue.claim import claim, extend
from bullpen.core.queue.enqueue import enqueue_many
from bullpen.core.store.base import Store
from tests.conformance.verbs import (
    AGENT,
    broken_off,
    do,
    done,
    dump,
    in_order,
    lane,
    lane_row,
    message,
    send,
    status,
    take,
    texts_of,
    try_claim,
)
from tests.stores import START, FakeClock


def test_an_empty_queue_has_nothing_to_claim_and_stays_untouched(store: Store) -> None:
    lane(store)
    before = dump(store)
    assert try_claim(store) is None
    assert try_claim(store, AGENT) is None
    assert dump(store) == before


def test_messages_of_one_lane_are_claimed_in_the_order_in_which_they_came(
    store: Store, clock: FakeClock
) -> None:
    lane(store)
    for text in "abc":
        send(store, text)
        clock.advance(1)
    assert in_order(store) == list("abc")


def test_messages_of_one_moment_are_claimed_in_the_order_in_which_they_came(store: Store) -> None:
    lane(store)
    with store.write() as tx:
        enqueue_many(tx, [NewMessage(agent=AGENT, message=str(n)) for n in range(20)])
    assert in_order(store) == [str(n) for n in range(20)]


def test_the_lane_whose_head_waits_longest_goes_first(store: Store, clock: FakeClock) -> None:
    for agent in ("a", "b", "c"):
        lane(store, agent)
    for agent in ("b", "c", "a"):
        send(store, f"for {agent}", agent)
        clock.advance(1)
    assert in_order(store) == ["for b", "for c", "for a"]


def test_a_claimed_lane_gives_nothing_more_and_the_others_go_on(store: Store) -> None:
    lane(store, "a")
    lane(store, "b")
    send(store, agent="a", sender="ada")
    send(store, agent="a", sender="bob")
    send(store, agent="b")
    first = take(store)
    assert first.agent == "a"
    before = dump(store)
    assert try_claim(store, "a") is None
    assert dump(store) == before
    assert take(store).agent == "b"
    assert try_claim(store) is None


def test_a_message_that_comes_during_the_run_waits_for_its_end(store: Store) -> None:
    lane(store)
    send(store, "one")
    first = take(store)
    send(store, "two")
    assert try_claim(store) is None
    done(store, first.token)
    assert texts_of(take(store)) == ["two"]


def test_a_claim_for_one_agent_takes_no_other_agents_messages(store: Store) -> None:
    lane(store, "a")
    lane(store, "b")
    send(store, agent="a")
    assert try_claim(store, "b") is None
    assert take(store, "a").agent == "a"


def test_a_claim_shows_the_message_as_it_was_sent(store: Store) -> None:
    lane(store)
    reply_to = ReplyTo("C1", "T1", "M1")
    sent = send(
        store,
        "do it",
        channel="slack",
        sender="Ada",
        sender_id="U1",
        files=("/a",),
        reply_to=reply_to,
        payload="{}",
        schema="v1",
        team_id="dev",
    )
    found = take(store)
    got = found.primary
    assert (got.message_id, got.message, got.agent, got.channel) == (sent, "do it", AGENT, "slack")
    assert (got.sender, got.sender_id, got.files) == ("Ada", "U1", '["/a"]')
    assert ReplyTo.parse(str(got.reply_to)) == reply_to
    assert (got.payload, got.schema, got.team_id) == ("{}", "v1", "dev")
    assert (got.conversation_id, got.hop, got.retry_count, got.crash_count) == (sent, 0, 0, 0)
    assert got.created_at == START
    row = message(store, sent)
    assert (row["status"], row["claim_token"]) == ("processing", found.token)
    assert row["claimed_by"] == lane_row(store)["claimed_by"] == "worker-1"


def test_no_two_claims_have_the_same_token(store: Store) -> None:
    lane(store)
    tokens = set()
    for _ in range(5):
        send(store)
        found = take(store)
        tokens.add(found.token)
        done(store, found.token)
    assert len(tokens) == 5


def test_a_lease_lasts_as_long_as_the_setting_or_the_claim_says(store: Store) -> None:
    lane(store, "a")
    lane(store, "b")
    send(store, agent="a")
    send(store, agent="b")
    assert take(store, "a").lease_expires_at == START + store.settings.lease_seconds * SECOND
    with store.write() as tx:
        found = claim(tx, "worker-1", agent="b", lease=5)
    assert found is not None
    assert found.lease_expires_at == START + 5 == lane_row(store, "b")["lease_expires_at"]


def test_a_renewed_lease_is_not_taken_away(store: Store, clock: FakeClock) -> None:
    lane(store)
    sent = send(store)
    found = take(store)
    for _ in range(540):  # three hours
        clock.advance(20 * SECOND)
        with store.write() as tx:
            assert extend(tx, found.token) == clock.now() + 60 * SECOND
        do(store, expire_leases)
    assert status(store, sent) == "processing"
    done(store, found.token)
    assert status(store, sent) == "completed"


@pytest.mark.parametrize(("passed", "taken"), [(59_999, 0), (60_000, 1)])
def test_a_lease_is_over_at_its_end_and_not_before(
    store: Store, clock: FakeClock, passed: int, taken: int
) -> None:
    lane(store)
    sent = send(store)
    take(store)
    clock.advance(passed)
    with store.write() as tx:
        assert expire_leases(tx) == taken
    assert status(store, sent) == ("pending" if taken else "processing")


def test_every_lease_that_is_over_is_taken_back_at_once(store: Store, clock: FakeClock) -> None:
    for agent in ("a", "b", "c"):
        lane(store, agent)
        send(store, agent=agent)
        take(store)
        clock.advance(30 * SECOND)
    with store.write() as tx:
        assert expire_leases(tx) == 2
    assert take(store).agent == "a"
    assert take(store).agent == "b"
    assert try_claim(store) is None


def test_the_next_processor_takes_what_a_dead_one_had(store: Store, clock: FakeClock) -> None:
    lane(store)
    send(store, "one")
    take(store)
    clock.advance(60 * SECOND)
    do(store, expire_leases)
    again = take(store)
    assert texts_of(again) == ["one"]
    assert again.primary.crash_count == 1
    assert again.primary.retry_count == 0


def test_a_claim_of_an_agent_that_does_not_exist_is_refused(store: Store) -> None:
    with pytest.raises(UnknownAgent), store.write() as tx:
        claim(tx, "worker-1", agent="ghost")


def test_a_rolled_back_claim_never_was(store: Store) -> None:
    lane(store)
    send(store)
    before = dump(store)
    with broken_off(store.write(durable=False)) as tx:
        assert claim(tx, "worker-1") is not None
    assert dump(store) == before
