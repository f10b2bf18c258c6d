"""Chats: cursors, what is set by people and by platforms, and chats that move."""

from __future__ import annotations

import pytest

from bullpen.core.channels.chats import (
    Access,
    ChatRecord,
    ChatSeen,
    Verbosity,
    add_chat,
    allow_group,
    find_chat,
    list_chats,
    move_chat,
    note_away_told,
    note_sent,
    note_told,
    set_default_agent,
    set_name,
    set_opted_out,
    set_penalty,
    set_verbosity,
    set_window,
    touch_chat,
)
from bullpen.core.errors import BadText
from bullpen.core.message import Answer, ReplyTo
from bullpen.core.models import RESPONSES
from bullpen.core.outbox.delivery import begin_part, mark_unknown
from bullpen.core.outbox.leases import lease_responses
from bullpen.core.outbox.write import send_to_person
from bullpen.core.store.base import Store
from tests.conformance.verbs import rows
from tests.stores import START, FakeClock


def touch(store: Store, cursor: str | None = None, at: int | None = None, chat: str = "C1") -> None:
    """A message came in."""
    with store.write() as tx:
        seen = ChatSeen(chat=chat, direct=False, name="general", cursor=cursor, cursor_at=at)
        touch_chat(tx, "slack", seen)


def see(store: Store, chat: str = "C1") -> ChatRecord:
    """What is known of a chat."""
    with store.read() as tx:
        found = find_chat(tx, "slack", chat)
    assert found is not None
    return found


def test_a_cursor_only_moves_forward(store: Store) -> None:
    for cursor, at, expected in (
        ("17.5", 1000, "17.5"),
        ("16.0", 900, "17.5"),
        ("18.0", 1100, "18.0"),
        ("9", 1200, "9"),
        ("10", 1200, "10"),
        ("9", 1200, "10"),
        ("11", 1200, "11"),
    ):
        touch(store, cursor, at)
        assert see(store).cursor == expected
    touch(store)
    assert (see(store).cursor, see(store).cursor_at) == ("11", 1200)


def test_a_cursor_is_stored_with_its_message_or_not_at_all(store: Store) -> None:
    def store_and_fail() -> None:
        with store.write() as tx:
            touch_chat(tx, "slack", ChatSeen(chat="C1", direct=True, cursor="1", cursor_at=1))
            raise BadText("the message is empty")

    with pytest.raises(BadText):
        store_and_fail()
    with store.read() as tx:
        assert find_chat(tx, "slack", "C1") is None


def test_a_message_keeps_what_was_known_of_its_chat(store: Store, clock: FakeClock) -> None:
    with store.write() as tx:
        seen = ChatSeen(chat="D1", direct=True, name="Ann\nA.", person="U1")
        touch_chat(tx, "slack", seen)
        clock.advance(1000)
    with store.write() as tx:
        touch_chat(tx, "slack", ChatSeen(chat="D1", direct=True))
    chat = see(store, "D1")
    assert (chat.direct, chat.name, chat.person) == (True, "Ann A.", "U1")
    assert (chat.created_at, chat.last_in_at) == (START, START + 1000)


def test_what_is_set_is_kept(store: Store) -> None:
    touch(store)
    here = ("slack", "C1")
    with store.write() as tx:
        set_name(tx, *here, "new name")
        set_default_agent(tx, *here, "coder")
        set_window(tx, *here, START + 5)
        set_opted_out(tx, *here, START + 1)
        set_penalty(tx, *here, START + 2)
        set_verbosity(tx, *here, Verbosity.QUIET)
        note_sent(tx, *here)
        note_told(tx, *here)
        note_away_told(tx, *here)
    chat = see(store)
    assert (chat.name, chat.default_agent, chat.verbosity) == ("new name", "coder", Verbosity.QUIET)
    assert (chat.window_until, chat.opted_out_at) == (START + 5, START + 1)
    assert (chat.penalty_until, chat.last_out_at) == (START + 2, START)
    assert (chat.told_at, chat.away_told_at) == (START, START)


def test_chats_are_listed_a_page_at_a_time(store: Store) -> None:
    for chat in ("C3", "C1", "C2"):
        touch(store, chat=chat)
    with store.read() as tx:
        first = list_chats(tx, "slack", limit=2)
        rest = list_chats(tx, "slack", after=first[-1].chat)
        assert list_chats(tx, "telegram") == []
    assert [each.chat for each in (*first, *rest)] == ["C1", "C2", "C3"]


def test_a_chat_that_moved_keeps_its_settings_and_its_responses_follow(store: Store) -> None:
    touch(store, "7", 7, chat="-1")
    places = ("-1", "-1", "-10", "-1")
    with store.write() as tx:
        allow_group(tx, "slack", "-1", Access.EVERYONE, "owner")
        set_default_agent(tx, "slack", "-1", "coder")
        for number, chat in enumerate(places):
            reply_to = str(ReplyTo(chat, "t1", str(number)))
            answer = Answer(message=str(number))
            send_to_person(tx, answer, channel="slack", sender="Ann", reply_to=reply_to)
    with store.write() as tx:
        (first, *_) = lease_responses(tx, "slack", "client", 1)
        begin_part(tx, first.claim_token or "")
        mark_unknown(tx, first.claim_token or "", "no answer")
    for expected in (3, 0):
        with store.write() as tx:
            assert move_chat(tx, "slack", "-1", "-100") == expected
    found = [str(row["reply_to"]).split("\x1f")[0] for row in rows(store, RESPONSES)]
    assert found == ["-100", "-100", "-10", "-100"]
    old, new = see(store, "-1"), see(store, "-100")
    assert old.migrated_to == "-100"
    assert (new.access, new.default_agent, new.cursor) == (Access.EVERYONE, "coder", None)


def test_a_late_message_does_not_shorten_the_window(store: Store) -> None:
    with store.write() as tx:
        add_chat(tx, "whatsapp", "+15550001", direct=True)
        for until in (START + 50, START + 5, START + 60, START + 59):
            set_window(tx, "whatsapp", "+15550001", until)
        found = find_chat(tx, "whatsapp", "+15550001")
    assert found is not None
    assert found.window_until == START + 60
