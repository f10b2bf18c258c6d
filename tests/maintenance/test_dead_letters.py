"""The dead letters: counted by what they died of, told once, and never missed."""

from __future__ import annotations

import json
import logging

import pytest
from sqlalchemy import bindparam, update

from bullpen.core.clock import DAY, HOUR, MINUTE
from bullpen.core.maintenance import dead_letters as module
from bullpen.core.maintenance.dead_letters import (
    BATCH,
    SETTLE_TIME,
    list_causes,
    watch_dead_letters,
)
from bullpen.core.message import ErrorKind, NewMessage
from bullpen.core.models import DEATH_CAUSES, LANES, MESSAGES, SYSTEM_AGENTS
from bullpen.core.queue.enqueue import enqueue_many
from bullpen.core.queue.manage import retry
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement
from tests.conformance.verbs import do, events, failed, lane, responses, rows, send, take
from tests.maintenance.election import enter_rota
from tests.stores import FakeClock

# As ADVANCE, of a row whose cursor another process has moved.
LATER: Statement[None] = Statement(
    lambda: (
        update(SYSTEM_AGENTS)
        .where(SYSTEM_AGENTS.c.cursor == bindparam("seen") + 1)
        .values(cursor=bindparam("upto"))
    )
)


@pytest.fixture(autouse=True)
def entered(store: Store) -> None:
    """Every loop has its row, and there is an agent."""
    enter_rota(store)
    lane(store)


def die(store: Store, error: str, count: int = 1) -> None:
    """Let so many messages die of this."""
    for _ in range(count):
        send(store, channel="internal")
        failed(store, take(store).token, ErrorKind.PERMANENT, error=error)


def grown(store: Store) -> list[dict[str, object]]:
    """What the events tell."""
    return [json.loads(str(row["data"])) for row in events(store, "dead_letters_grew")]


def told(store: Store) -> list[str]:
    """What the owner was told."""
    return [str(row["message"]) for row in responses(store) if row["sender"] == "owner"]


def test_deaths_that_differ_in_numbers_only_are_one_cause(store: Store, clock: FakeClock) -> None:
    die(store, "connection 1234 was refused")
    die(store, "connection 99 was refused")
    die(store, "out of memory")
    clock.advance(SETTLE_TIME)
    assert watch_dead_letters(store) == "3 dead letters, 3 new (2 causes)"
    assert {(each["error"], each["deaths"]) for each in rows(store, DEATH_CAUSES)} == {
        ("connection 99 was refused", 2),
        ("out of memory", 1),
    }
    assert {(each["error"], each["new"], each["deaths"]) for each in grown(store)} == {
        ("connection 99 was refused", 2, 2),
        ("out of memory", 1, 1),
    }
    assert all(each["agents"] == ["coder"] and each["kind"] == "permanent" for each in grown(store))
    assert len(told(store)) == 2


def test_only_what_died_since_the_last_look_is_new(
    store: Store, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    def warned() -> list[str]:
        caplog.clear()
        clock.advance(MINUTE)
        watch_dead_letters(store)
        return [each.message for each in caplog.records if each.levelno >= logging.WARNING]

    assert warned() == []
    die(store, "no", 2)
    (text,) = warned()
    assert text.startswith("2 dead letters with the same cause (permanent): no. Next: ")
    assert "bullpen queue dead" in text
    assert warned() == []
    die(store, "no")
    (text,) = warned()
    assert text.startswith("1 more dead letter (3 in total) with the same cause (permanent): no")
    assert watch_dead_letters(store) == "3 dead letters, 0 new"


def test_the_owner_is_told_once_a_day_of_a_cause(store: Store, clock: FakeClock) -> None:
    for _ in range(30):
        die(store, "no")
        clock.advance(HOUR)
        watch_dead_letters(store)
    first, second = told(store)
    assert first.startswith("1 message to @coder is dead. Cause (permanent): no\n")
    assert "bullpen queue dead" in first
    assert second.startswith("1 more message to @coder (25 in total) is dead. ")
    assert len(grown(store)) == 30


def test_a_notice_of_several_messages_says_so(store: Store, clock: FakeClock) -> None:
    die(store, "no", 2)
    clock.advance(MINUTE)
    watch_dead_letters(store)
    assert told(store)[0].startswith("2 messages to @coder are dead. Cause (permanent): no\n")


def test_the_cause_of_a_death_is_listed_at_once(store: Store, clock: FakeClock) -> None:
    def causes(limit: int = 9) -> list[tuple[str, int]]:
        with store.read() as tx:
            return [(each.error, each.deaths) for each in list_causes(tx, limit)]

    die(store, "connection 1234 was refused")
    assert causes() == [("connection 1234 was refused", 1)]
    clock.advance(MINUTE)
    watch_dead_letters(store)
    assert causes() == [("connection 1234 was refused", 1)]
    die(store, "connection 99 was refused")
    clock.advance(1)
    die(store, "out of memory")
    assert causes() == [("out of memory", 1), ("connection 99 was refused", 2)]
    assert causes(1) == [("out of memory", 1)]
    clock.advance(MINUTE)
    watch_dead_letters(store)
    assert causes() == [("out of memory", 1), ("connection 99 was refused", 2)]


def test_what_died_just_now_is_looked_at_later_and_not_missed(
    store: Store, clock: FakeClock
) -> None:
    """On PostgreSQL, who began earlier may commit later."""
    die(store, "no")
    clock.advance(SETTLE_TIME - 1)
    assert watch_dead_letters(store) == "1 dead letter, 0 new"
    clock.advance(1)
    assert watch_dead_letters(store) == "1 dead letter, 1 new (1 cause)"


def test_what_was_dead_long_before_is_counted_and_not_told(store: Store, clock: FakeClock) -> None:
    die(store, "no")
    clock.advance(DAY)
    watch_dead_letters(store)
    assert [row["deaths"] for row in rows(store, DEATH_CAUSES)] == [1]
    assert told(store) == []


def test_a_message_that_dies_again_counts_again(store: Store, clock: FakeClock) -> None:
    message_id = send(store, channel="internal")
    for _ in range(2):
        failed(store, take(store).token, ErrorKind.PERMANENT, error="no")
        clock.advance(MINUTE)
        watch_dead_letters(store)
        do(store, retry, message_id)
    assert [each["deaths"] for each in grown(store)] == [1, 2]


def test_many_that_died_in_one_moment_are_all_counted(store: Store, clock: FakeClock) -> None:
    count = 2 * BATCH + 7
    with store.write() as tx:
        enqueue_many(tx, [NewMessage(agent="coder", message="hi") for _ in range(count)])
    with store.engine.begin() as connection:
        connection.execute(
            update(MESSAGES).values(
                status="dead", last_error="no", error_kind="permanent", updated_at=clock.now()
            )
        )
        # Some of them a millisecond later, so that a page ends among them.
        connection.execute(
            update(MESSAGES)
            .where(MESSAGES.c.id % 3 == 0)
            .values(updated_at=MESSAGES.c.updated_at + MESSAGES.c.id)
        )
        connection.execute(update(LANES).values(pending=0, head_key=None))
    clock.advance(MINUTE)
    assert watch_dead_letters(store) == f"{count} dead letters, {count} new (1 cause)"
    assert [row["deaths"] for row in rows(store, DEATH_CAUSES)] == [count]
    assert len(told(store)) == 1


def test_what_another_has_looked_at_meanwhile_is_not_counted_twice(
    store: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when one has lost its turn and does not know."""
    die(store, "no", 3)
    clock.advance(MINUTE)
    advance = module.ADVANCE_CURSOR
    monkeypatch.setattr(module, "ADVANCE_CURSOR", LATER)
    assert watch_dead_letters(store) == "3 dead letters, 0 new"
    assert rows(store, DEATH_CAUSES) == []
    monkeypatch.setattr(module, "ADVANCE_CURSOR", advance)
    assert watch_dead_letters(store) == "3 dead letters, 3 new (1 cause)"


def test_after_the_clock_was_set_back_deaths_are_seen(store: Store, clock: FakeClock) -> None:
    with store.engine.begin() as connection:
        connection.execute(update(SYSTEM_AGENTS).values(cursor=clock.now() + DAY))
    die(store, "no")
    watch_dead_letters(store)
    clock.advance(MINUTE)
    watch_dead_letters(store)
    assert [row["deaths"] for row in rows(store, DEATH_CAUSES)] == [1]
