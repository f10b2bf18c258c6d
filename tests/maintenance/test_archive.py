"""What is finished leaves after a day, whole; what waits for somebody stays."""

from __future__ import annotations

import pytest
from sqlalchemy import insert, update

from bullpen.core.clock import DAY, HOUR
from bullpen.core.errors import DuplicateMessage
from bullpen.core.maintenance.retention import ARCHIVE_MESSAGES, ARCHIVE_RESPONSES, run_retention
from bullpen.core.message import ErrorKind, NewMessage, Priority, ReplyTo
from bullpen.core.models import LANES, MESSAGES, MESSAGES_ARCHIVE, RESPONSES, RESPONSES_ARCHIVE
from bullpen.core.outbox.manage import ack_response, drop_response
from bullpen.core.queue.enqueue import enqueue, enqueue_many
from bullpen.core.queue.manage import cancel
from bullpen.core.queue.timers import run_timers
from bullpen.core.states import ResponseState
from bullpen.core.store.base import Store
from tests.conformance.verbs import Row, do, done, failed, lane, rows, send, take
from tests.outbox.outgoing import answer, put_into
from tests.stores import FakeClock


def _kept(row: Row) -> Row:
    """A message without what only counts while it waits."""
    return {name: value for name, value in row.items() if name not in ("key_id", "key_bytes")}


def test_finished_messages_move_after_a_day_and_not_before(store: Store, clock: FakeClock) -> None:
    lane(store)
    send(store, message_id="api_1")
    done(store, take(store).token)
    clock.advance(DAY - 1)
    assert run_retention(store, "archive").startswith("0 messages")
    clock.advance(1)
    assert run_retention(store, "archive").startswith("1 message,")
    assert rows(store, MESSAGES) == []
    assert [row["message_id"] for row in rows(store, MESSAGES_ARCHIVE)] == ["api_1"]


def test_a_message_is_kept_whole(store: Store, clock: FakeClock) -> None:
    lane(store)
    with store.write() as tx:
        enqueue(
            tx,
            NewMessage(
                agent="coder",
                message='text "with" é ☃\n',
                channel="slack",
                sender="Ann",
                sender_id="U1",
                message_id="slack_whole",
                files=("/a", "/b"),
                team_id="dev",
                reply_to=ReplyTo("C1", "t1", "m1"),
                priority=Priority.HIGH,
                deadline=clock.now() + 30 * DAY,
                payload='{"x": 1}',
                schema="x/1",
            ),
        )
    failed(store, take(store).token)
    clock.advance(HOUR)
    done(store, take(store).token)
    before = rows(store, MESSAGES)
    clock.advance(DAY)
    run_retention(store, "archive")
    assert rows(store, MESSAGES_ARCHIVE) == [_kept(row) for row in before]
    assert before[0]["retry_count"] == 1


def test_a_response_is_kept_whole(store: Store, clock: FakeClock) -> None:
    put_into(store, ResponseState.ACKED)
    before = rows(store, RESPONSES)
    answer(store, "slack_newest")
    clock.advance(DAY)
    run_retention(store, "archive")
    assert rows(store, RESPONSES_ARCHIVE) == before


def test_cancelled_and_expired_messages_move_too(store: Store, clock: FakeClock) -> None:
    lane(store)
    do(store, cancel, send(store, message_id="api_cancelled"))
    send(store, message_id="api_expired", deadline=clock.now() + 5)
    clock.advance(5)
    with store.write() as tx:
        run_timers(tx)
    clock.advance(DAY)
    run_retention(store, "archive")
    assert {row["message_id"] for row in rows(store, MESSAGES_ARCHIVE)} == {
        "api_cancelled",
        "api_expired",
    }


def test_what_waits_runs_is_held_or_dead_stays_however_old_it_is(
    store: Store, clock: FakeClock
) -> None:
    for name in ("dead", "held", "running", "waiting"):
        lane(store, name)
    send(store, agent="dead")
    failed(store, take(store, "dead").token, ErrorKind.PERMANENT)
    send(store, agent="held", hold_reason="too expensive")
    send(store, agent="running")
    take(store, "running")
    send(store, agent="waiting")
    clock.advance(30 * DAY)
    run_retention(store, "archive")
    kept = {row["agent"]: row["status"] for row in rows(store, MESSAGES)}
    assert kept == {
        "dead": "dead",
        "held": "held",
        "running": "processing",
        "waiting": "pending",
    }


def test_an_archived_id_stays_a_duplicate_and_tells_how_it_ended(
    store: Store, clock: FakeClock
) -> None:
    lane(store)
    send(store, message_id="api_1")
    done(store, take(store).token)
    clock.advance(DAY)
    run_retention(store, "archive")
    with pytest.raises(DuplicateMessage) as refused:
        send(store, message_id="api_1")
    assert refused.value.status == "completed"


def test_a_redelivery_of_an_archived_message_is_recognised(store: Store, clock: FakeClock) -> None:
    lane(store)
    send(store, message_id="slack_1", channel="slack", event_ids=("Ev1",))
    done(store, take(store).token)
    clock.advance(DAY)
    run_retention(store, "archive")
    with store.write() as tx:
        again = enqueue(
            tx, NewMessage(agent="coder", message="hello", channel="slack", event_ids=("Ev1",))
        )
    assert (again.message_id, again.fresh) == ("slack_1", False)
    assert rows(store, MESSAGES) == []


def test_a_transaction_moves_at_most_500_messages(store: Store, clock: FakeClock) -> None:
    lane(store)
    news = [NewMessage(agent="coder", message="hi") for _ in range(1100)]
    with store.write() as tx:
        enqueue_many(tx, news)
    with store.engine.begin() as connection:
        connection.execute(update(MESSAGES).values(status="completed"))
        connection.execute(update(LANES).values(pending=0, head_key=None))
    before = rows(store, MESSAGES)
    clock.advance(DAY)
    moved = []
    for _ in range(4):
        with store.write() as tx:
            moved.append(ARCHIVE_MESSAGES.remove_batch(tx))
    assert moved == [500, 500, 100, 0]
    assert rows(store, MESSAGES_ARCHIVE) == [_kept(row) for row in before]
    assert rows(store, MESSAGES) == []


def test_a_run_of_the_loop_moves_all_that_is_due_and_says_how_many(
    store: Store, clock: FakeClock
) -> None:
    first = answer(store, "slack_1")
    (row,) = rows(store, RESPONSES)
    row.update(status="acked", acked_at=clock.now())
    with store.engine.begin() as connection:
        connection.execute(
            insert(RESPONSES), [{**row, "id": first + number} for number in range(1, 1101)]
        )
    clock.advance(DAY)
    with store.write() as tx:
        assert ARCHIVE_RESPONSES.remove_batch(tx) == 500
    assert run_retention(store, "archive") == "0 messages, 599 responses archived"
    assert len(rows(store, RESPONSES_ARCHIVE)) == 1099
    assert [each["id"] for each in rows(store, RESPONSES)] == [first, first + 1100]


def test_only_delivered_responses_move(store: Store, clock: FakeClock) -> None:
    for state in reversed(ResponseState):
        put_into(store, state)
    answer(store, "slack_newest")
    clock.advance(30 * DAY)
    run_retention(store, "archive")
    assert [row["status"] for row in rows(store, RESPONSES_ARCHIVE)] == ["acked"]


def test_the_newest_response_stays_so_that_its_id_is_never_given_again(
    store: Store, clock: FakeClock
) -> None:
    made = []
    for number in range(3):
        made.append(answer(store, f"slack_{number}"))
        do(store, ack_response, made[-1])
    clock.advance(DAY)
    run_retention(store, "archive")
    assert [row["id"] for row in rows(store, RESPONSES)] == made[-1:]
    later = answer(store, "slack_later")
    assert later > made[-1]
    do(store, drop_response, later)
    run_retention(store, "archive")
    assert [row["id"] for row in rows(store, RESPONSES_ARCHIVE)] == made
    assert run_retention(store, "archive") == "0 messages, 0 responses archived"


def test_a_message_sent_after_all_were_archived_gets_an_id_of_its_own(
    store: Store, clock: FakeClock
) -> None:
    lane(store)
    for _ in range(2):
        send(store)
        done(store, take(store).token)
        clock.advance(DAY)
        run_retention(store, "archive")
    ids = [row["id"] for row in rows(store, MESSAGES_ARCHIVE)]
    assert len(ids) == len(set(ids)) == 2
