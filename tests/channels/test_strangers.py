"""An unpaired person costs one row and one reply an hour, whatever they send, and no file."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from bullpen.channels.files.attachments import Prepared
from bullpen.channels.inbound import (
    Attachment,
    Chat,
    Deleted,
    Edited,
    Inbound,
    Person,
    Pressed,
    Source,
    Written,
)
from bullpen.channels.incoming.decide import Incoming, IntakeSettings
from bullpen.core.channels.chats import Access, add_chat, allow_group
from bullpen.core.channels.pairing import MAX_WAITING
from bullpen.core.clock import DAY, HOUR, MINUTE
from bullpen.core.store.base import Store
from tests.conformance.verbs import hire
from tests.outbox.outgoing import everything
from tests.stores import FakeClock

CHANNEL, AGENT = "slack", "coder"
FILE = Attachment(name="a.png", source="https://files.example/a.png", type="image/png", size=9)
ONE_REPLY = {"senders": 1, "responses": 1, "channel_health": 1, "events": 2}
GROUPS = ("C1", "C2")


class RefusingFiles:
    """Fails if a file is about to be fetched."""

    def prepare(
        self, place: str, text: str, attachments: Sequence[Attachment], delay: int = 0
    ) -> Prepared:
        """Only for messages that are stored."""
        raise AssertionError("a file of an unpaired person is fetched")

    def keep(self, *given: object, **named: object) -> None:
        """Only for messages that are stored."""
        raise AssertionError("a file of an unpaired person is kept")


def client() -> Incoming:
    """The intake of a process that has just started."""
    settings = IntakeSettings(default_agent=AGENT, edits="rerun")
    return Incoming(CHANNEL, "home", settings, RefusingFiles(), has_buttons=True)


def from_stranger(number: int, chat: str, *, person: str = "U9", at: int) -> list[Inbound]:
    """Everything that a person can send, once."""
    direct = not chat.startswith("C")
    source = Source(
        chat=Chat(id=chat, direct=direct, name="x"),
        person=Person(id=person, name=f"Name {number}"),
        message=f"m{number}",
        at=at,
        keys=(f"{person} {chat} {number}",),
    )

    def keyed(word: str) -> Source:
        return replace(source, keys=(f"{source.keys[0]} {word}",))

    return [
        Written(source=source, text="hello", attachments=(FILE, FILE), cursor=str(number)),
        Written(source=keyed("t"), text="hello", follows=f"{chat}/T", cursor_chat=f"{chat}/T"),
        *(
            Written(source=keyed(each), text=each, cursor=str(number))
            for each in ("", "/agents", "/approve ABCDEFGH", "@coder hello", "@default coder")
        ),
        Edited(source=keyed("e"), original=source.keys, text="@coder hello"),
        Deleted(source=keyed("d"), original=source.keys),
        Pressed(source=keyed("p"), value="/rerun proactive_1"),
    ]


def take(store: Store, taker: Incoming, found: Sequence[Inbound]) -> None:
    with store.write() as tx:
        for each in found:
            if not taker.is_ignored(each):
                taker.take(tx, each)
        taker.flush(tx)


@pytest.fixture
def company(store: Store) -> Store:
    """An agent, and two groups for paired people."""
    hire(store, AGENT)
    with store.write() as tx:
        for each in GROUPS:
            add_chat(tx, CHANNEL, each, direct=False)
            allow_group(tx, CHANNEL, each, Access.MEMBERS, by="owner")
    return store


@pytest.fixture
def cost(company: Store) -> Callable[[], dict[str, int]]:
    """The rows by table that were added since."""

    def count() -> Counter[str]:
        return Counter({name: len(rows) for name, rows in everything(company).items()})

    before = count()
    return lambda: dict(count() - before)


def test_all_that_a_stranger_sends_costs_one_row_and_one_reply_an_hour(
    company: Store, clock: FakeClock, cost: Callable[[], dict[str, int]]
) -> None:
    taker = client()
    for number in range(100):
        chat = ("D9", *GROUPS, f"D{number + 100}")[number % 4]
        take(company, taker, from_stranger(number, chat, at=clock.now()))
        if number % 30 == 29:
            taker = client()  # the process starts again
        clock.advance(MINUTE // 2)
    assert cost() == ONE_REPLY
    clock.advance(HOUR)
    take(company, taker, from_stranger(1_000, "D9", at=clock.now()))
    assert cost() == ONE_REPLY | {"responses": 2, "events": 4}


def test_many_strangers_in_many_groups_cost_as_much_as_three_that_wait(
    company: Store, clock: FakeClock, cost: Callable[[], dict[str, int]]
) -> None:
    taker = client()
    for number in range(60):
        chat = f"C{number + 100}" if number % 2 else f"D{number + 100}"
        take(company, taker, from_stranger(number, chat, person=f"U{number}", at=clock.now()))
    found = cost()
    assert found.pop("senders") + found.pop("chats") == MAX_WAITING
    assert found == {"responses": MAX_WAITING, "events": 2 * MAX_WAITING, "channel_health": 1}


def test_two_processes_at_once_reply_once(
    company: Store, clock: FakeClock, cost: Callable[[], dict[str, int]]
) -> None:
    barrier = threading.Barrier(2)
    now = clock.now()

    def serve(name: int) -> None:
        taker = client()
        for number in range(10):
            barrier.wait(30)
            take(company, taker, from_stranger(100 * name + number, "D9", at=now))

    threads = [threading.Thread(target=serve, args=(each,)) for each in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert cost() == ONE_REPLY


@pytest.mark.parametrize("jump", [-DAY, -2 * HOUR, -HOUR // 2, HOUR // 2, 365 * DAY])
def test_a_clock_that_jumps_costs_one_more_reply_and_keeps_nobody_out(
    company: Store, clock: FakeClock, cost: Callable[[], dict[str, int]], jump: int
) -> None:
    taker = client()
    take(company, taker, from_stranger(1, "D9", at=clock.now()))
    clock.advance(jump)
    for number in range(2, 12):
        take(company, taker, from_stranger(number, "D9", at=clock.now()))
    again = 2 if abs(jump) >= HOUR else 1
    assert cost() == ONE_REPLY | {"responses": again, "events": 2 * again}
    # The codes of a clock that was wrong hold no place.
    for number in range(1, MAX_WAITING):
        take(company, taker, from_stranger(number, f"D{number}", person=f"V{number}", at=0))
    assert cost()["senders"] == MAX_WAITING
