"""An hour's absence, and what has queued meanwhile, in and out: once each, in order."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bullpen.channels.telegram.platform import Telegram
from bullpen.core.clock import HOUR, MINUTE, SECOND, SystemClock
from bullpen.core.message import Answer, ReplyTo
from bullpen.core.models import CHATS
from bullpen.core.outbox.write import send_to_person
from bullpen.core.queue.claim import claim
from bullpen.core.queue.lanes import Batching, LanePolicy, configure_lane
from bullpen.core.settings import Settings
from tests.channels.conformance.conftest import MEMBERS, Account, account
from tests.channels.conformance.kinds import Kind
from tests.channels.conformance.quick import waits
from tests.channels.served import AGENT
from tests.conformance.verbs import rows, texts_of
from tests.processor.working import eventually
from tests.stores import Stores

WRITTEN = 500
QUEUED = 120
LONG_WAIT_SECONDS = 97 * 60.0


class LaterClock(SystemClock):
    """The clock of the machine, set forward by a test."""

    ahead = 0

    def now(self) -> int:
        return super().now() + self.ahead


@pytest.fixture
def clock() -> LaterClock:
    """The clock of the database and the client."""
    return LaterClock()


@pytest.fixture
def away(
    stores: Stores,
    settings: Settings,
    channel: Kind,
    clock: LaterClock,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Account]:
    """An account that was connected, heard two people, and is stopped."""
    for module, name, value in waits(channel.channel):
        monkeypatch.setattr(module, name, value)
    with account(stores, settings, channel, clock) as made:
        made.start()
        made.up()
        made.say("before")
        made.say("before", 2)
        eventually(lambda: len(made.messages()) == 2, "two messages")
        made.stop()
        yield made


def of(served: Account, number: int) -> list[dict[str, object]]:
    """The messages of a person."""
    return [dict(each) for each in served.messages() if each["sender_id"] == served.person(number)]


def test_after_most_of_an_hour_everything_is_taken_in_once_and_nothing_is_held(
    away: Account, clock: LaterClock
) -> None:
    texts = [f"meanwhile {each}" for each in range(10)]
    for each in texts:
        away.say(each)
    clock.ahead = 50 * MINUTE
    away.start()
    eventually(lambda: len(of(away, 1)) == 11, "all of them")
    assert [each["message"] for each in of(away, 1)] == ["before", *texts]
    assert {each["status"] for each in away.messages()} == {"pending"}
    assert not away.responses()


def test_after_more_than_an_hour_messages_are_held_and_each_chat_is_told_once(
    away: Account, clock: LaterClock
) -> None:
    texts = [f"meanwhile {each}" for each in range(10)]
    for each in texts:
        away.say(each)
    away.say("from another", 2)
    clock.ahead = 3 * HOUR
    away.start()
    eventually(lambda: len(away.messages()) == 13, "all of them")
    assert [each["message"] for each in of(away, 1)] == ["before", *texts]
    assert [each["status"] for each in of(away, 1)] == ["pending"] + ["held"] * len(texts)
    assert [each["status"] for each in of(away, 2)] == ["pending", "held"]
    held = of(away, 1)[1]
    written = held["written_at"]
    assert isinstance(written, int)
    assert clock.now() - written > 2 * HOUR
    for number in (1, 2):
        chat = away.direct(number)
        eventually(lambda: bool(away.posts(chat)), "the notice")  # noqa: B023
        (notice,) = away.posts(chat)
        assert "arrived late" in notice
        assert "3h ago" in notice or "3 hours ago" in notice, notice
    told = [each for each in rows(away.store, CHATS) if each["away_told_at"]]
    assert len(told) == 2


def test_what_was_written_in_an_hours_outage_is_all_answered_once_and_in_order(
    away: Account, clock: LaterClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Telegram, "chat_interval", 0.0)  # 250 answers in one chat
    with away.store.write() as tx:
        configure_lane(tx, AGENT, LanePolicy(batching=Batching.ONE))
    expected: dict[int, list[str]] = {number: [] for number in (1, 2)}  # those who are known
    for each in range(WRITTEN):
        number = each % 2 + 1
        expected[number].append(f"question {each}")
        away.say(f"question {each}", number)
    clock.ahead = 59 * MINUTE
    away.start()
    answered = 0
    while answered < WRITTEN + 2:
        eventually(lambda: any(e["status"] == "pending" for e in away.messages()), "work")
        answered += answer_all(away)
    for number, texts in expected.items():
        chat, answers = away.direct(number), ["re before", *(f"re {each}" for each in texts)]
        eventually(lambda: len(away.posts(chat)) >= len(answers), "all answers", 60)  # noqa: B023
        assert away.posts(chat) == answers
    eventually(lambda: {e["status"] for e in away.responses()} == {"acked"}, "all are acked")


def answer_all(served: Account) -> int:
    """Answer every message that is due; returns how many."""
    from bullpen.core.answers.complete import complete
    from bullpen.core.message import RunOutput

    count = 0
    while True:
        with served.store.write(durable=False) as tx:
            claimed = claim(tx, "worker-1")
        if claimed is None:
            return count
        text = ", ".join(f"re {each}" for each in texts_of(claimed))
        with served.store.write(durable=False) as tx:
            complete(tx, claimed, RunOutput(text=text), ())
        count += len(claimed.messages)


def test_many_queued_responses_arrive_once_and_in_order(away: Account) -> None:
    expected: dict[int, list[str]] = {number: [] for number in range(1, MEMBERS + 1)}
    with away.store.write() as tx:
        for each in range(QUEUED):
            number = each % MEMBERS + 1
            expected[number].append(f"queued {each}")
            send_to_person(
                tx,
                Answer(message=f"queued {each}"),
                channel=away.channel,
                sender=f"P{number}",
                sender_id=away.person(number),
                agent=AGENT,
                reply_to=str(ReplyTo(away.direct(number))),
            )
    away.start()
    for number, texts in expected.items():
        chat = away.direct(number)
        eventually(lambda: len(away.posts(chat)) >= len(texts), f"all in {chat}", 60)  # noqa: B023
        assert away.posts(chat) == texts
    eventually(lambda: {e["status"] for e in away.responses()} == {"acked"}, "all are acked")


def test_ha_91969_a_wait_of_97_minutes_holds_up_one_chat_and_is_written_in_its_row(
    away: Account, clock: LaterClock
) -> None:
    away.start()
    away.up()
    began = clock.now()
    away.platform.fail_next("rate_limit", seconds=LONG_WAIT_SECONDS)
    first = away.respond("first")
    eventually(lambda: "wait" in (away.response(first)["last_error"] or ""), "it is limited")
    second = away.respond("second")
    other = away.respond("other", number=2)
    away.ends(other, "acked")
    row = away.response(first)
    assert row["status"] == "pending"
    assert row["available_at"] - began >= LONG_WAIT_SECONDS * SECOND
    assert row["available_at"] - clock.now() <= LONG_WAIT_SECONDS * SECOND
    assert row["delivery_attempts"] == 1 or row["delivery_attempts"] == 0
    away.say("people are heard meanwhile", 3)
    eventually(lambda: bool(of(away, 3)), "a message is taken in")
    away.stop()
    away.start()  # the wait is in the row
    away.up()
    away.ends(away.respond("another", number=2), "acked")
    assert away.response(second)["status"] == "pending"
    assert not away.posts()
    clock.ahead = int(LONG_WAIT_SECONDS * SECOND) + MINUTE
    away.stop()
    away.start()
    away.ends(second, "acked")
    away.seen("first", "second")
