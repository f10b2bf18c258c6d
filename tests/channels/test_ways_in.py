"""What only the owner may do is refused to everybody else, by any way in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from bullpen.channels.inbound import Chat, Edited, Inbound, Person, Pressed, Source, Written
from bullpen.channels.incoming.commands import COMMANDS
from bullpen.channels.incoming.decide import Incoming, IntakeSettings
from bullpen.core.channels.chats import Access, add_chat, allow_group
from bullpen.core.channels.pairing import request_group, request_pairing
from bullpen.core.channels.senders import Tier, set_tier
from bullpen.core.message import Answer
from bullpen.core.models import CHANNEL_HEALTH, CHATS, LANES, MESSAGES, RESPONSES, SENDERS
from bullpen.core.outbox.write import send_to_person
from bullpen.core.queue.manage import hold
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from tests.channels.recording import NoFiles
from tests.conformance.verbs import Row, hire, rows, send, try_claim
from tests.stores import FakeClock, Stores

CHANNEL, OTHER, AGENT = "slack", "telegram", "coder"
OWNER, MEMBER, GUEST, BLOCKED, STRANGER, ASKING = "U1", "U2", "U3", "U4", "U5", "U6"
OWNERS_ID_ELSEWHERE = "4711"
DIRECT, ROOM, OPEN, CLOSED = "D1", "C1", "C2", "C3"
ONLY = [each.name for each in COMMANDS if each.tier is Tier.OWNER]
PEOPLE = (MEMBER, GUEST, BLOCKED, STRANGER, OWNERS_ID_ELSEWHERE, "", OWNER.lower(), f"{OWNER} ")
Way = Callable[[Source, str], Inbound]

WRITINGS = (
    "/{}",
    "!{}",
    "/{}@bullpen_bot",
    "  /{}\n",
    "\n\n!{}",
    "/{}\u00a0",
    "> /{}",
    "@coder /{}",
    "`/{}`",
    "\uff0f{}",
)


def written(source: Source, text: str) -> Inbound:
    return Written(source=source, text=text)


def pressed(source: Source, text: str) -> Inbound:
    return Pressed(source=source, value=text)


def edited(source: Source, text: str) -> Inbound:
    """An edit of a message of the same person."""
    original = f"{source.person.id.strip()} first"
    return Edited(source=source, original=(original,), text=text)


def in_a_thread(source: Source, text: str) -> Inbound:
    """A text that names nobody, in a thread that the bot takes part in."""
    source = replace(source, thread="T1")
    return Written(source=source, text=text, addressed=False, follows=f"{source.chat.id}/T1")


WAYS: dict[str, Way] = {
    "text": written,
    "button": pressed,
    "edit": edited,
    "thread": in_a_thread,
}


@pytest.fixture
def settings(stores: Stores, kind: str) -> Settings:
    """The owner is a person of another channel."""
    found = stores.settings(kind)
    return replace(found, owner_channel=OTHER, owner_id=OWNERS_ID_ELSEWHERE, default_agent=AGENT)


@pytest.fixture
def company(store: Store, clock: FakeClock) -> Store:
    """An agent at work, a held message, requests that wait, and a person of each tier."""
    hire(store, AGENT)
    hire(store, "writer")
    with store.write() as tx:
        for person, tier in (
            (OWNER, Tier.OWNER),
            (MEMBER, Tier.MEMBER),
            (GUEST, Tier.GUEST),
            (BLOCKED, Tier.BLOCKED),
        ):
            set_tier(tx, CHANNEL, person, tier, by="test", name=f"Name of {person}")
        for chat, access in ((ROOM, Access.MEMBERS), (OPEN, Access.EVERYONE)):
            for each in (chat, f"{chat}/T1"):
                add_chat(tx, CHANNEL, each, direct=False)
            allow_group(tx, CHANNEL, chat, access, by="test")
        request_pairing(tx, CHANNEL, ASKING, "Asking")
        request_group(tx, CHANNEL, CLOSED, "closed")
    held = send(store, "held", channel="web", sender="Owner")
    with store.write() as tx:
        hold(tx, held, "it is old")
    send(store, "at work", channel="web", sender="Owner")
    assert try_claim(store) is not None
    return store


def state(store: Store) -> list[object]:
    """All that a command of the owner changes."""

    def of(found: list[Row], *names: str) -> list[tuple[object, ...]]:
        return sorted(tuple(each[name] for name in names) for each in found)

    web = [each for each in rows(store, MESSAGES) if each["channel"] == "web"]
    health = rows(store, CHANNEL_HEALTH)
    return [
        of(rows(store, LANES), "agent", "state"),
        of([each for each in rows(store, SENDERS) if each["tier"]], "sender_id", "tier"),
        of([each for each in rows(store, CHATS) if each["access"]], "chat", "access"),
        of(web, "message_id", "status"),
        of(health, "channel", "paused"),
    ]


@contextmanager
def unchanged(store: Store) -> Iterator[None]:
    before = state(store)
    yield
    assert state(store) == before


def codes(store: Store) -> list[str]:
    """The codes of the requests that wait, for a person and for a group."""
    found = [each["code"] for each in (*rows(store, SENDERS), *rows(store, CHATS)) if each["code"]]
    assert len(found) >= 2
    return found


def orders(store: Store) -> list[str]:
    """Each command of the owner with each argument that would have an effect."""
    (held,) = (each["message_id"] for each in rows(store, MESSAGES) if each["status"] == "held")
    (busy,) = (each["message_id"] for each in rows(store, MESSAGES) if each["message"] == "at work")
    given = {
        "approve": [*codes(store), *(f"{each} owner" for each in codes(store)), held],
        "cancel": [held, busy],
        "allow": ["", "everyone"],
        "restart": [""],
    }
    return [f"{name} {each}".strip() for name in ONLY for each in given.get(name, [AGENT])]


def incoming() -> Incoming:
    settings = IntakeSettings(default_agent=AGENT, edits="rerun")
    return Incoming(CHANNEL, "home", settings, NoFiles(), has_buttons=True)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.one_store
def test_cve_2026_28392_no_way_in_lets_others_do_what_the_owner_can(
    company: Store, way: str
) -> None:
    """Also with the owner's name, and with the id that the owner has on another channel."""
    taker, given = incoming(), orders(company)
    with unchanged(company), company.write() as tx:
        for person in PEOPLE:
            who = Person(id=person, name=f"Name of {OWNER}")
            for chat in (DIRECT, ROOM, OPEN, CLOSED):
                where = Chat(id=chat, direct=chat == DIRECT, name=f"Name of {OWNER}")
                key = f"{person.strip()} first"
                first = Source(chat=where, person=who, at=tx.now, keys=(key,))
                taker.take(tx, Written(source=first, text="first"))
                for number, text in enumerate(each.format(o) for o in given for each in WRITINGS):
                    source = replace(first, keys=(f"{person} {chat} {number}",))
                    assert not taker.take(tx, WAYS[way](source, text)).restart
    replies = [each["message"] for each in rows(company, RESPONSES)]
    done = ("Approved", "Resumed", "Paused", "Cancelled `", "This group is")
    assert not [each for each in replies if each.startswith(done)]
    if way in ("text", "button"):
        assert any("Only the owner" in each for each in replies)


def test_an_offer_runs_on_its_own_account_only(company: Store) -> None:
    metadata = '{"runs": [{"text": "run this", "agent": "coder"}]}'
    with company.write() as tx:
        offer = send_to_person(
            tx,
            Answer(message="offer", metadata=metadata),
            channel=OTHER,
            sender="Ann",
            sender_id=MEMBER,
        )
        where = Source(
            chat=Chat(id=DIRECT, direct=True), person=Person(id=MEMBER), at=tx.now, keys=("k",)
        )
        incoming().take(tx, Pressed(source=where, value=f"/rerun {offer}"))
    assert "run this" not in [each["message"] for each in rows(company, MESSAGES)]
    assert any("no edit of yours" in each["message"] for each in rows(company, RESPONSES))


def test_the_same_orders_of_the_owner_have_an_effect(company: Store) -> None:
    before = state(company)
    given = orders(company)
    with company.write() as tx:
        for number, order in enumerate(each for each in given if "resume" not in each):
            source = Source(
                chat=Chat(id=CLOSED, direct=False),
                person=Person(id=OWNER),
                at=tx.now,
                keys=(f"k{number}",),
            )
            incoming().take(tx, written(source, f"/{order}"))
    for old, new in list(zip(before, state(company), strict=True))[:4]:
        assert old != new
