"""Bad input: a typed error with a code and a hint, before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from bullpen.core.answers.complete import fail
from bullpen.core.errors import (
    BadDelay,
    BadText,
    BullpenError,
    DeadlinePassed,
    InputError,
    LaneClosed,
    LaneFull,
    NotFound,
    TextTooLong,
    UnknownAgent,
)
from bullpen.core.message import Answer, ErrorKind, Failure, NewMessage, Outcome, ReplyTo, RoomPost
from bullpen.core.queue.conversations import cancel_conversation
from bullpen.core.queue.enqueue import enqueue, enqueue_many
from bullpen.core.queue.fail import release
from bullpen.core.queue.finish import finish
from bullpen.core.queue.lanes import LanePolicy, archive_lane, drain_lane, pause_lane
from bullpen.core.queue.manage import cancel, drop, hold, resume, retry
from bullpen.core.store.base import Store
from bullpen.core.store.transaction import Transaction
from tests.conformance.verbs import AGENT, do, lane, refused, send, take
from tests.stores import START

NEW = NewMessage(agent=AGENT, message="x")
MEGABYTE = 1 << 20
HUGE = 10**30
BAD = {"nul": "a\0b", "surrogate": "a\ud800b"}


def _only(name: str) -> Callable[[str], Mapping[str, object]]:
    return lambda text: {name: text}


TEXTS: dict[str, Callable[[str], Mapping[str, object]]] = {
    **{
        name: _only(name)
        for name in (
            *("agent", "message", "channel", "sender", "sender_id", "message_id"),
            *(
                "from_agent",
                "conversation_id",
                "parent_id",
                "team_id",
                "payload",
                "schema",
                "hold_reason",
            ),
        )
    },
    "files": lambda text: {"files": (text,)},
    "event_ids": lambda text: {"event_ids": ("Ev1", text)},
    "reply_to": lambda text: {"reply_to": ReplyTo(chat=text)},
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
@pytest.mark.parametrize("name", TEXTS)
def test_text_that_cannot_be_stored_is_refused_wherever_it_stands(
    store: Store, name: str, bad: str
) -> None:
    lane(store)
    new = replace(NEW, **TEXTS[name](bad))  # type: ignore[arg-type]
    refused(store, BullpenError, enqueue, new)


@pytest.mark.parametrize("name", TEXTS)
def test_a_mistake_is_found_before_the_messages_before_it_are_written(
    store: Store, name: str
) -> None:
    lane(store)
    new = replace(NEW, **TEXTS[name]("a\0b"))  # type: ignore[arg-type]
    refused(store, BullpenError, enqueue_many, [NEW, new])


@pytest.mark.parametrize("text", ["x" * (MEGABYTE + 1), "é" * (MEGABYTE // 2 + 1)])
def test_a_message_over_a_mebibyte_is_refused(store: Store, text: str) -> None:
    lane(store)
    error = refused(store, TextTooLong, enqueue, replace(NEW, message=text))
    assert str(MEGABYTE) in str(error)


def test_a_payload_over_a_mebibyte_is_refused(store: Store) -> None:
    lane(store)
    refused(store, TextTooLong, enqueue, replace(NEW, payload="x" * (MEGABYTE + 1)))


def test_an_empty_message_is_refused(store: Store) -> None:
    lane(store)
    refused(store, BadText, enqueue, replace(NEW, message=""))


@pytest.mark.parametrize("delay", [-1, -HUGE])
def test_a_negative_delay_is_refused(store: Store, delay: int) -> None:
    lane(store)
    refused(store, BadDelay, enqueue, replace(NEW, delay=delay))


@pytest.mark.parametrize("deadline", [START, START - 1, 0, -1])
def test_a_deadline_that_is_over_is_refused(store: Store, deadline: int) -> None:
    lane(store)
    refused(store, DeadlinePassed, enqueue, replace(NEW, deadline=deadline))


@pytest.mark.parametrize("new", [replace(NEW, delay=HUGE), replace(NEW, deadline=HUGE)])
def test_a_time_that_no_database_can_keep_is_refused(store: Store, new: NewMessage) -> None:
    lane(store)
    refused(store, InputError, enqueue, new)


def test_an_unknown_agent_is_refused(store: Store) -> None:
    refused(store, UnknownAgent, enqueue, replace(NEW, agent="ghost"))


def test_an_unknown_agent_among_known_ones_is_refused(store: Store) -> None:
    lane(store)
    refused(store, UnknownAgent, enqueue_many, [NEW, replace(NEW, agent="ghost")])


def test_a_full_or_closed_lane_refuses_before_anything_is_written_elsewhere(store: Store) -> None:
    lane(store)
    lane(store, "full", LanePolicy(max_depth=0))
    lane(store, "draining")
    lane(store, "archived")
    do(store, drain_lane, "draining")
    do(store, archive_lane, "archived")
    refused(store, LaneFull, enqueue_many, [NEW, replace(NEW, agent="full")])
    refused(store, LaneClosed, enqueue_many, [NEW, replace(NEW, agent="draining")])
    refused(store, LaneClosed, enqueue_many, [NEW, replace(NEW, agent="archived")])


OUTCOMES: dict[str, Callable[[str], Outcome]] = {
    "answer": lambda text: Outcome(answers=(Answer(message="a"), Answer(message=text))),
    "answer's file": lambda text: Outcome(answers=(Answer(message="a", files=(text,)),)),
    "answer's metadata": lambda text: Outcome(answers=(Answer(message="a", metadata=text),)),
    "handoff": lambda text: Outcome(
        answers=(Answer(message="a"),), handoffs=(replace(NEW, message=text),)
    ),
    "room post": lambda text: Outcome(
        answers=(Answer(message="a"),),
        room_posts=(RoomPost(team_id="dev", message=text, to=(AGENT,)),),
    ),
    "room post to nobody": lambda text: Outcome(room_posts=(RoomPost(team_id="d", message=text),)),
    "room": lambda text: Outcome(room_posts=(RoomPost(team_id=text, message="x"),)),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
@pytest.mark.parametrize("name", OUTCOMES)
def test_an_outcome_that_cannot_be_stored_is_refused_and_the_claim_goes_on(
    store: Store, name: str, bad: str
) -> None:
    lane(store)
    send(store)
    found = take(store)
    refused(store, BadText, finish, found.token, OUTCOMES[name](bad))
    do(store, finish, found.token, Outcome())


@pytest.mark.parametrize("name", ["answer", "handoff", "room post"])
def test_an_outcome_over_the_limit_is_refused_and_the_claim_goes_on(
    store: Store, name: str
) -> None:
    lane(store)
    send(store)
    found = take(store)
    refused(store, TextTooLong, finish, found.token, OUTCOMES[name]("x" * (MEGABYTE + 1)))
    do(store, finish, found.token, Outcome())


@pytest.mark.parametrize("chat", ["a\x1fb", "\x1f\x1f\x1f", "é 🎉", "a\nb"])
def test_a_reply_address_is_refused_or_survives_to_the_handoff(store: Store, chat: str) -> None:
    lane(store)
    try:
        new = replace(NEW, reply_to=ReplyTo(chat=chat, thread="t", message="m"))
        with store.write() as tx:
            enqueue(tx, new)
    except InputError:
        return
    do(store, finish, take(store).token, Outcome(handoffs=(NEW,)))
    assert ReplyTo.parse(str(take(store).primary.reply_to)) == new.reply_to


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_an_error_text_that_cannot_be_stored_is_refused_and_the_claim_goes_on(
    store: Store, bad: str
) -> None:
    lane(store)
    send(store)
    found = take(store)
    refused(store, BadText, fail, found.token, Failure(kind=ErrorKind.PERMANENT, error=bad))
    do(store, finish, found.token, Outcome())


REASONS: dict[str, Callable[[Transaction, str, str], object]] = {
    "hold": lambda tx, sent, text: hold(tx, sent, text),
    "cancel": lambda tx, sent, text: cancel(tx, sent, text),
    "cancel_conversation": lambda tx, sent, text: cancel_conversation(tx, sent, text),
    "pause": lambda tx, sent, text: pause_lane(tx, AGENT, text),
    "drain": lambda tx, sent, text: drain_lane(tx, AGENT, text),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
@pytest.mark.parametrize("name", REASONS)
def test_a_reason_that_cannot_be_stored_is_refused(store: Store, name: str, bad: str) -> None:
    lane(store)
    sent = send(store)
    refused(store, BadText, REASONS[name], sent, bad)


IDS: dict[str, Callable[[Transaction, str], object]] = {
    "cancel": cancel,
    "let_go": resume,
    "retry": retry,
    "drop": drop,
    "release": release,
    "hold": lambda tx, text: hold(tx, text, "wait"),
    "pause": lambda tx, text: pause_lane(tx, text, "lunch"),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
@pytest.mark.parametrize("name", IDS)
def test_a_name_that_cannot_exist_is_unknown_or_refused(store: Store, name: str, bad: str) -> None:
    error = refused(store, BullpenError, IDS[name], bad)
    assert isinstance(error, (NotFound, InputError)) or error.code == "stale_token"
