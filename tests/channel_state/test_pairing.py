"""Pairing: who gets a code, what it costs, and how it is approved."""

from __future__ import annotations

import pytest

from bullpen.core.channels.chats import (
    Access,
    ChatSeen,
    allow_group,
    find_chat,
    forbid_group,
    touch_chat,
)
from bullpen.core.channels.pairing import (
    CODE_ALPHABET,
    CODE_CHARS,
    approve,
    deny,
    describe_access,
    list_waiting,
    request_group,
    request_pairing,
)
from bullpen.core.channels.people import approve_request, change_tier
from bullpen.core.channels.senders import (
    PAIRED_TEXT,
    Sender,
    Tier,
    block,
    find_sender,
    find_tier,
    revoke,
    set_tier,
)
from bullpen.core.clock import HOUR, MINUTE
from bullpen.core.errors import PairingLockedOut
from bullpen.core.message import ReplyTo
from bullpen.core.models import CHATS, EVENTS, RESPONSES, SENDERS
from bullpen.core.store.base import Store
from tests.conformance.verbs import rows
from tests.stores import FakeClock


def ask(store: Store, sender: str = "U1", channel: str = "slack") -> str | None:
    """A message of an unpaired person."""
    with store.write() as tx:
        return request_pairing(tx, channel, sender, f"Name of {sender}")


def asked(store: Store, sender: str = "U1", channel: str = "slack") -> str:
    """A message that is answered with a code."""
    code = ask(store, sender, channel)
    assert code is not None
    return code


def let_in(store: Store, code: str, tier: Tier = Tier.MEMBER) -> object:
    """The owner approves a code on Slack."""
    with store.write() as tx:
        return approve(tx, "slack", code, tier, "owner")


def tier_of(store: Store, sender: str = "U1") -> Tier | None:
    with store.read() as tx:
        return find_tier(tx, "slack", sender)


def events(store: Store) -> list[str]:
    return [str(each["type"]) for each in rows(store, EVENTS)]


def test_an_unpaired_person_costs_one_row_and_one_reply_an_hour(
    store: Store, clock: FakeClock
) -> None:
    assert asked(store)
    for _ in range(50):
        clock.advance(MINUTE)
        assert ask(store) is None
    clock.advance(10 * MINUTE)
    assert asked(store)
    assert len(rows(store, SENDERS)) == 1
    assert events(store) == ["pairing_asked"] * 2


def test_a_code_can_be_read_aloud_and_is_not_in_the_events(store: Store) -> None:
    code = asked(store)
    assert len(code) == CODE_CHARS
    assert set(code) <= set(CODE_ALPHABET)
    assert not set(CODE_ALPHABET) & set("O0I1L")
    assert code not in str(rows(store, EVENTS))


def test_at_most_three_wait_on_a_channel_people_and_groups_together(
    store: Store, clock: FakeClock
) -> None:
    assert asked(store, "U1")
    assert asked(store, "U2")
    with store.write() as tx:
        assert request_group(tx, "slack", "C1", "general")
    assert ask(store, "U3") is None
    with store.write() as tx:
        assert request_group(tx, "slack", "C2", "random") is None
    assert asked(store, "U3", "telegram")
    assert [each["sender_id"] for each in rows(store, SENDERS)] == ["U1", "U2", "U3"]
    assert [each["chat"] for each in rows(store, CHATS)] == ["C1"]
    clock.advance(HOUR)
    assert asked(store, "U3")


@pytest.mark.parametrize("tier", [Tier.OWNER, Tier.MEMBER, Tier.GUEST])
def test_an_approved_person_has_the_tier_and_gets_no_code_again(store: Store, tier: Tier) -> None:
    code = asked(store)
    approved = let_in(store, f" {code[:4].lower()}-{code[4:]} ", tier)
    assert isinstance(approved, Sender)
    assert (approved.sender_id, approved.tier, approved.code) == ("U1", tier, None)
    assert tier_of(store) is tier
    assert ask(store) is None
    assert let_in(store, code) is None
    assert events(store) == ["pairing_asked", "pairing_approved"]


def told(store: Store) -> list[tuple[str, str, str]]:
    """The messages to people, with their addresses."""
    found = rows(store, RESPONSES)
    return [(each["message"], each["sender_id"], each["reply_to"]) for each in found]


@pytest.mark.parametrize("way", ["code", "chat", "id"])
def test_a_person_is_told_once_where_they_asked_that_they_are_paired(
    store: Store, way: str
) -> None:
    place = ReplyTo("C1", "t1", "m1")
    with store.write() as tx:
        code = request_pairing(tx, "slack", "U1", "Ann", place)
    assert code is not None
    with store.write() as tx:
        match way:
            case "code":
                approve_request(tx, code, Tier.MEMBER, "owner")
            case "chat":
                approve(tx, "slack", code, Tier.MEMBER, "owner")
            case "id":
                change_tier(tx, "slack", "U1", Tier.MEMBER, "owner")
    assert told(store) == [(PAIRED_TEXT, "U1", str(place))]
    with store.write() as tx:
        for tier in (Tier.GUEST, Tier.BLOCKED, Tier.OWNER):
            change_tier(tx, "slack", "U1", tier, "owner")
        revoke(tx, "slack", "U1", "owner")
    assert len(told(store)) == 1


def test_a_person_who_is_paired_by_their_id_is_told_in_a_direct_chat_that_is_known(
    store: Store,
) -> None:
    with store.write() as tx:
        touch_chat(tx, "slack", ChatSeen(chat="D1", direct=True, person="U1"))
        set_tier(tx, "slack", "U1", Tier.GUEST, "owner")
        set_tier(tx, "slack", "U2", Tier.GUEST, "owner")
        set_tier(tx, "telegram", "U1", Tier.GUEST, "owner")
    assert told(store) == [(PAIRED_TEXT, "U1", str(ReplyTo("D1")))]


def test_a_blocked_or_denied_person_is_not_told(store: Store) -> None:
    with store.write() as tx:
        code = request_pairing(tx, "slack", "U1", "Ann", ReplyTo("D1"))
        assert code is not None
        deny(tx, "slack", code)
        request_pairing(tx, "slack", "U2", "Bob", ReplyTo("D2"))
        block(tx, "slack", "U2", "owner")
    assert told(store) == []


def test_an_expired_code_lets_nobody_in(store: Store, clock: FakeClock) -> None:
    code = asked(store)
    clock.advance(HOUR)
    assert let_in(store, code) is None
    assert tier_of(store) is None


def test_a_code_is_for_its_channel_only(store: Store) -> None:
    code = asked(store, channel="telegram")
    assert let_in(store, code) is None


def test_after_five_wrong_codes_none_is_accepted_for_an_hour(
    store: Store, clock: FakeClock
) -> None:
    for _ in range(5):
        assert let_in(store, "AAAAAAAA") is None
    clock.advance(HOUR - 1)
    code = asked(store)
    with pytest.raises(PairingLockedOut, match="1 minute"):
        let_in(store, code)
    clock.advance(1)
    assert let_in(store, code)
    assert events(store).count("pairing_locked") == 1


def test_wrong_codes_over_many_days_do_not_lock(store: Store, clock: FakeClock) -> None:
    for _ in range(5):
        clock.advance(HOUR)
        assert let_in(store, "AAAAAAAA") is None
    assert let_in(store, asked(store))


def test_a_denied_request_ends_and_the_person_is_not_answered_again_within_the_hour(
    store: Store,
) -> None:
    code = asked(store)
    with store.write() as tx:
        request = deny(tx, "slack", code)
    assert request is not None
    assert request.id == "U1"
    assert ask(store) is None
    assert let_in(store, code) is None
    with store.read() as tx:
        assert list_waiting(tx, "slack") == []


def test_a_blocked_person_gets_no_code(store: Store, clock: FakeClock) -> None:
    asked(store)
    with store.write() as tx:
        block(tx, "slack", "U1", "owner")
    clock.advance(2 * HOUR)
    assert ask(store) is None
    assert tier_of(store) is Tier.BLOCKED
    assert events(store) == ["pairing_asked", "sender_blocked"]


def test_a_revoked_person_must_pair_again(store: Store) -> None:
    let_in(store, asked(store))
    with store.write() as tx:
        assert revoke(tx, "slack", "U1", "owner")
        assert not revoke(tx, "slack", "U1", "owner")
    assert tier_of(store) is None
    assert asked(store)


def test_a_group_that_is_let_in_is_told_and_has_an_access_and_no_code(store: Store) -> None:
    with store.write() as tx:
        code = request_group(tx, "slack", "C1", "general")
        assert code
        assert request_group(tx, "slack", "C1", "general") is None
    let_in(store, code)
    ((text, _, place),) = told(store)
    assert (text, place) == (describe_access(Access.MEMBERS), str(ReplyTo("C1")))
    with store.write() as tx:
        chat = find_chat(tx, "slack", "C1")
        assert chat is not None
        assert (chat.access, chat.allowed_by, chat.code) == (Access.MEMBERS, "owner", None)
        assert allow_group(tx, "slack", "C1", Access.EVERYONE, "owner")
        assert forbid_group(tx, "slack", "C1", "owner")
        assert not forbid_group(tx, "slack", "C1", "owner")
        chat = find_chat(tx, "slack", "C1")
        assert chat is not None
        assert chat.access is None
    assert events(store) == [
        *("pairing_asked", "pairing_approved", "response_ready"),
        *("pairing_approved", "pairing_revoked"),
    ]


def test_a_name_from_outside_is_one_line_without_controls(store: Store) -> None:
    with store.write() as tx:
        request_pairing(tx, "slack", "U1", "Ann\n\x1b[31mred\u202e" + "x" * 500)
        sender = find_sender(tx, "slack", "U1")
    assert sender is not None
    assert sender.name.startswith("Ann red")
    assert len(sender.name) == 200
    assert sender.name.isprintable()
