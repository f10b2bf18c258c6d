"""Texts, names and ids that nobody expects: the message is kept or refused in words."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from bullpen.channels.async_store import AsyncStore
from bullpen.channels.failures import (
    MAX_REASON_CHARS,
    ChannelDown,
    NotSent,
    OutcomeUnknown,
    Refused,
    SendFailed,
)
from bullpen.channels.inbound import (
    MAX_NAME_CHARS,
    Chat,
    ChatChange,
    Edited,
    Inbound,
    Payload,
    Person,
    Pressed,
    Source,
    Written,
)
from bullpen.channels.incoming.decide import Incoming, IntakeSettings
from bullpen.channels.incoming.follow_up import Taken
from bullpen.channels.incoming.queue import IntakeQueue
from bullpen.channels.slack.events import SlackBot, event_payload, parse_slack
from bullpen.core.channels.chats import Access, add_chat, allow_group, move_cursor
from bullpen.core.channels.senders import Tier, set_tier
from bullpen.core.message import SEPARATOR
from bullpen.core.models import CHATS, MESSAGES, RESPONSES, SENDERS
from bullpen.core.store.base import Store
from bullpen.core.store.transaction import Transaction
from tests.channels.recording import NoFiles
from tests.channels.test_intake_batches import Connected, Storing, open_store
from tests.channels.test_intake_batches import take as take_batch
from tests.conformance.verbs import hire, rows

__all__ = ["open_store"]

CHANNEL, AGENT, MEMBER, STRANGER, GROUP = "slack", "coder", "U1", "U9", "C2"
HOSTILE = {
    "nul": "a\0b",
    "surrogate": "a\ud800b",
    "escape": "\x1b]0;owner\x07\x1b[2Jowner",
    "direction": "\u202eresu\u2066",
    "lines": "a\n\nb\r\u2028c",
    "long": "x" * (3 << 20),
    "blanks": " " * 100_000 + "x",
    "empty": "",
    "reserved": "system",
    "agent": AGENT,
    "pattern": "%_" * 50,
}
TIMES = (-(1 << 70), -1, 0, 1 << 70)
SOON = 30.0


def written(text: str = "hello", at: int = 1, **source: object) -> Written:
    """A message of the member in a direct chat."""
    given = {"chat": Chat(id="D1", direct=True), "person": Person(id=MEMBER), "keys": (f"k{at}",)}
    made = Source(at=at, **{**given, **source})  # type: ignore[arg-type]
    return Written(source=made, text=text, cursor="1")


@pytest.fixture
def people(store: Store) -> Store:
    """A database with an agent, a member, and a group for everyone."""
    hire(store, AGENT)
    with store.write() as tx:
        set_tier(tx, CHANNEL, MEMBER, Tier.MEMBER, by="owner", name="Ann")
        add_chat(tx, CHANNEL, GROUP, direct=False)
        allow_group(tx, CHANNEL, GROUP, Access.EVERYONE, by="owner")
    return store


def take(store: Store, *given: Callable[[], Inbound]) -> None:
    """Take in what these parse to, each in a transaction of its own."""

    async def work() -> None:
        shared = AsyncStore(store)

        def parse(payload: Payload) -> Inbound:
            return given[int(str(payload["n"]))]()

        settings = IntakeSettings(default_agent=AGENT)
        incoming = Incoming(CHANNEL, "home", settings, NoFiles(), has_buttons=True)
        log = logging.getLogger("test")
        queue = IntakeQueue(shared, parse, incoming, Connected(), lambda _: None, log)
        running = asyncio.create_task(queue.run())
        for number in range(len(given)):
            async with asyncio.timeout(SOON):
                await queue.add({"n": number})
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        shared.close()

    asyncio.run(work())


def texts(store: Store) -> list[str]:
    return [each["message"] for each in rows(store, MESSAGES)]


@pytest.mark.parametrize("name", HOSTILE)
def test_the_name_of_a_person_or_group_never_costs_their_message(people: Store, name: str) -> None:
    bad = HOSTILE[name]
    now = people.clock.now()
    member = Person(id=MEMBER, name=bad)
    group = Chat(id=GROUP, direct=False, name=bad)
    take(
        people,
        lambda: written("direct", now, person=member),
        lambda: written("in a group", now + 1, chat=group, person=Person(id="U5", name=bad)),
        lambda: written("/whoami", now + 2, person=member),
        lambda: written("not paired", now + 3, person=Person(id=STRANGER, name=bad)),
        lambda: ChatChange(chat=group),
    )
    assert texts(people) == ["direct", "in a group"]
    replies = [each["message"] for each in rows(people, RESPONSES)]
    assert any("Your tier is member" in each for each in replies)
    assert any("approve" in each for each in replies)
    shown = [each["name"] or "" for each in (*rows(people, SENDERS), *rows(people, CHATS))]
    shown += [each["sender"] for each in (*rows(people, MESSAGES), *rows(people, RESPONSES))]
    for each in shown:
        assert len(each) <= MAX_NAME_CHARS
        assert each.isprintable()


@pytest.mark.parametrize("name", ["system", "Bullpen", "\uff42ullpen"])
def test_a_guest_with_a_name_of_bullpen_is_known_by_their_id_and_reaches_no_other_agent(
    people: Store, name: str
) -> None:
    hire(people, "writer")
    with people.write() as tx:
        set_tier(tx, CHANNEL, "U2", Tier.GUEST, by="owner", name="Bob")
    guest, now = Person(id="U2", name=name), people.clock.now()
    take(people, lambda: written("@writer hello", now, person=guest))
    (row,) = rows(people, MESSAGES)
    assert (row["agent"], row["sender"], row["message"]) == (AGENT, "id U2", "@writer hello")


@pytest.mark.parametrize("name", ["nul", "surrogate", "long"])
def test_a_text_that_cannot_be_stored_is_refused_in_words(people: Store, name: str) -> None:
    now = people.clock.now()
    take(
        people,
        lambda: written("before", now),
        lambda: written(HOSTILE[name], now + 1),
        lambda: written("after", now + 2),
    )
    assert texts(people) == ["before", "after"]
    (reply,) = (each["message"] for each in rows(people, RESPONSES))
    assert reply.startswith("Your message was not accepted: the message has")


@pytest.mark.parametrize("name", HOSTILE)
def test_no_id_button_command_or_edit_stops_the_next_message(people: Store, name: str) -> None:
    bad = HOSTILE[name]
    now = people.clock.now()
    first = written("before", now)
    made = first.source
    take(
        people,
        lambda: first,
        lambda: Pressed(source=replace(made, keys=("p1",)), value=bad),
        lambda: Pressed(source=replace(made, keys=("p2",)), value=f"/approve {bad}"),
        lambda: Pressed(source=replace(made, keys=("p3",)), value=f"/rerun {bad}"),
        lambda: Edited(source=replace(made, keys=("e1",)), original=made.keys, text=bad),
        lambda: Edited(source=replace(made, keys=("e2",)), original=(bad,), text="new"),
        *(
            lambda each=each: written(f"/{each} {bad}", now, keys=(each,))
            for each in ("default", "new", "stop", "progress", "approve")
        ),
        lambda: written("a", now, keys=(bad,)),
        lambda: written("b", now, keys=("b",), message=bad),
        lambda: written("c", now, keys=("c",), thread=bad),
        lambda: written("d", now, keys=("d",), chat=Chat(id=bad, direct=True)),
        lambda: written("e", now, keys=("e",), person=Person(id=bad)),
        lambda: replace(written("f", now, keys=("f",)), cursor=bad),
        lambda: replace(written("g", now, keys=("g",)), cursor_chat=bad),
        lambda: ChatChange(chat=Chat(id=bad, direct=False, name=bad), keys=("h",)),
        lambda: written("after", now, keys=("z",)),
    )
    assert texts(people)[-1] == "after"


@pytest.mark.parametrize("at", TIMES)
def test_a_message_with_an_impossible_time_is_stored(people: Store, at: int) -> None:
    now = people.clock.now()
    take(people, lambda: written("odd", at, keys=("odd",)), lambda: written("after", now))
    assert texts(people) == ["odd", "after"]


def test_a_thread_cannot_name_another_chat() -> None:
    with pytest.raises(ValueError, match="control character"):
        written(thread=f"1{SEPARATOR}2")


def test_what_the_database_refuses_costs_one_message_of_a_batch(open_store: Store) -> None:
    class Refusing(Storing):
        def take(self, tx: Transaction, inbound: Inbound) -> Taken:
            taken = super().take(tx, inbound)
            if isinstance(inbound, Written) and inbound.text == "refused":
                move_cursor(tx, CHANNEL, "C1", "1", 1 << 70)  # no database has such a number
            return taken

    given = ("a", "b", "refused", "c")
    batch = [{"cursor": n, "text": each} for n, each in enumerate(given)]
    stored, _ = take_batch(open_store, *batch, storing=Refusing())
    assert stored == ["a", "b", "c"]


def test_a_long_run_of_blanks_takes_linear_time_on_slack() -> None:
    bot = SlackBot(user="U0BOT", bot="B0BOT", teams=frozenset())
    text = f"x{' ' * 40_000}<@U0BOT>{' ' * 40_000}y"
    event = {"type": "message", "channel": "C1", "user": "U1", "ts": "1.1", "text": text}
    began = time.process_time()
    found = parse_slack(event_payload("events_api", {"event": event}, 1), bot)
    assert isinstance(found, Written)
    assert found.addressed
    assert time.process_time() - began < 1


@pytest.mark.parametrize("kind", [NotSent, Refused, OutcomeUnknown, ChannelDown])
def test_the_text_of_an_error_is_one_line_whatever_the_platform_answers(
    kind: type[SendFailed | ChannelDown],
) -> None:
    for bad in HOSTILE.values():
        text = str(kind("odd", bad) if issubclass(kind, ChannelDown) else kind(bad))
        assert text.isprintable()
        assert len(text) <= MAX_REASON_CHARS
