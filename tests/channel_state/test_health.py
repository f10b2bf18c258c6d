"""The health of channels: each change is told once."""

from __future__ import annotations

from bullpen.core.channels.health import (
    Activity,
    ChannelHealth,
    ChannelState,
    find_health,
    list_health,
    pause_channel,
    report_activity,
    report_state,
    resume_channel,
)
from bullpen.core.clock import MINUTE
from bullpen.core.models import EVENTS
from bullpen.core.outbox.recovery import found, look_again
from bullpen.core.store.base import Store
from tests.conformance.verbs import rows
from tests.outbox.outgoing import do, status
from tests.outbox.test_recovery import look_up_one, look_ups, unknown
from tests.stores import START, FakeClock


def report(store: Store, state: ChannelState, code: str = "") -> bool:
    with store.write() as tx:
        return report_state(tx, "slack", state, worker="slack-1", code=code, reason=code)


def see(store: Store) -> ChannelHealth:
    with store.read() as tx:
        found = find_health(tx, "slack")
    assert found is not None
    return found


def events(store: Store) -> list[str]:
    return [str(each["type"]) for each in rows(store, EVENTS)]


def test_a_revoked_token_is_told_once_whatever_restarts(store: Store, clock: FakeClock) -> None:
    assert not report(store, ChannelState.STARTING)
    assert report(store, ChannelState.DOWN, "token_revoked")
    for _ in range(5):
        clock.advance(1000)
        assert not report(store, ChannelState.DOWN, "token_revoked")
        assert not report(store, ChannelState.STOPPED)
        assert not report(store, ChannelState.STARTING)
        assert see(store).code == "token_revoked"
        assert not report(store, ChannelState.DOWN, "token_revoked")
    assert events(store) == ["channel_down"]
    assert report(store, ChannelState.DOWN, "missing_scope")
    assert not report(store, ChannelState.UP)
    assert events(store) == ["channel_down", "channel_down", "channel_up"]
    assert (see(store).told_at, see(store).code) == (None, "")
    assert report(store, ChannelState.DOWN, "token_revoked")


def test_a_state_that_is_reported_again_is_no_change(store: Store, clock: FakeClock) -> None:
    for _ in range(3):
        report(store, ChannelState.UP)
        report(store, ChannelState.DEGRADED, "one_connection")
        report(store, ChannelState.UP)
        clock.advance(10)
    assert events(store) == ["channel_up"]
    report(store, ChannelState.UP)
    since = see(store).since
    clock.advance(10)
    report(store, ChannelState.UP)
    assert see(store).since == since


def test_a_channel_that_is_up_again_looks_up_at_once_what_was_put_off(
    store: Store, clock: FakeClock
) -> None:
    report(store, ChannelState.UP)
    response = unknown(store)
    report(store, ChannelState.DOWN, "unreachable")
    clock.advance(11 * MINUTE)
    do(store, look_again, look_up_one(store)[1], MINUTE)
    clock.advance(MINUTE)
    assert look_ups(store) == []
    report(store, ChannelState.UP)
    do(store, found, look_up_one(store)[1], "ts-1", last=True)
    assert status(store, response) == "acked"


def test_a_channel_that_is_up_again_leaves_a_look_up_to_its_client(store: Store) -> None:
    unknown(store)
    look_up_one(store)
    report(store, ChannelState.UP)
    assert look_ups(store) == []


def test_activity_adds_up(store: Store) -> None:
    report(store, ChannelState.UP)
    with store.write() as tx:
        report_activity(tx, "slack", Activity(last_event_at=5, connections=2))
        report_activity(tx, "slack", Activity(last_event_at=7, caught_up="12 messages"))
        report_activity(tx, "slack", Activity())
    health = see(store)
    assert (health.last_event_at, health.connections, health.caught_up) == (7, 2, "12 messages")
    assert health.last_message_at is None


def test_a_pause_is_kept_while_no_process_serves_the_channel(store: Store) -> None:
    with store.write() as tx:
        assert pause_channel(tx, "slack")
        assert not pause_channel(tx, "slack")
    assert see(store).state is ChannelState.STOPPED
    report(store, ChannelState.STARTING)
    assert see(store).paused
    with store.write() as tx:
        assert resume_channel(tx, "slack")
        assert not resume_channel(tx, "slack")
        assert [each.channel for each in list_health(tx)] == ["slack"]
    assert not see(store).paused
    assert events(store) == ["channel_paused", "channel_resumed"]
    assert see(store).updated_at == START


def test_an_outage_does_not_end_the_fault_that_the_owner_was_notified_of(store: Store) -> None:
    assert report(store, ChannelState.DOWN, "token_revoked")
    for _ in range(3):
        assert not report(store, ChannelState.DEGRADED, "disconnected")
        assert see(store).code == "token_revoked"
        assert not report(store, ChannelState.DOWN, "token_revoked")
    assert events(store) == ["channel_down"]
    report(store, ChannelState.UP)
    assert events(store) == ["channel_down", "channel_up"]


def test_after_an_outage_what_was_put_off_is_looked_up_at_once(
    store: Store, clock: FakeClock
) -> None:
    report(store, ChannelState.UP)
    unknown(store)
    report(store, ChannelState.DEGRADED, "disconnected")
    clock.advance(11 * MINUTE)
    do(store, look_again, look_up_one(store)[1], MINUTE)
    report(store, ChannelState.UP)
    assert len(look_ups(store)) == 1
