"""Who may write: pairing, tiers, groups, and one decision for every way in."""

from __future__ import annotations

import re

import pytest

from bullpen.core.channels.chats import Access
from bullpen.core.channels.pairing import approve
from bullpen.core.channels.people import approve_request
from bullpen.core.channels.senders import PAIRED_TEXT, Tier
from bullpen.core.models import CHATS, MESSAGES, RESPONSES, SENDERS
from tests.channels.conformance import driving
from tests.channels.conformance.conftest import Account
from tests.conformance.verbs import rows
from tests.processor.working import eventually

STRANGER = 9


def code_of(served: Account) -> str:
    """The pairing code that a stranger was sent."""
    chat = served.direct(STRANGER)
    eventually(lambda: bool(served.posts(chat)), "the reply with the code")
    found = re.search(r"approve ([A-Z0-9]{8})", served.posts(chat)[0])
    assert found is not None, served.posts(chat)
    return found[1]


def test_a_stranger_gets_one_code_and_is_let_in_by_it(served: Account) -> None:
    served.say("hello", STRANGER)
    code = code_of(served)
    with served.store.write() as tx:
        assert approve(tx, served.channel, code, Tier.MEMBER, by="owner") is not None
    served.say("hello again", STRANGER)
    served.stored("hello again")


def test_an_approved_person_is_told_once_in_the_chat_where_they_asked(served: Account) -> None:
    served.pair(2, Tier.OWNER)
    served.say("hello", STRANGER)
    code = code_of(served)
    served.say(f"/approve {code}", 2)
    chat = served.direct(STRANGER)
    eventually(lambda: len(served.posts(chat)) > 1, "the message to the person")
    assert served.posts(chat)[1] == PAIRED_TEXT
    for tier in (Tier.GUEST, Tier.BLOCKED, Tier.MEMBER):
        served.pair(STRANGER, tier)
    served.ends(served.respond("an answer", STRANGER), "acked")
    assert len(served.posts(chat)) == 3


def test_an_approved_group_is_told(served: Account) -> None:
    if not served.kind.groups:
        pytest.skip("the platform has no groups")
    group = served.platform.chat(False)
    served.say("hello", chat=group)
    eventually(lambda: bool(served.posts(group)), "the reply with the code")
    (request,) = (each for each in rows(served.store, CHATS) if each["code"])
    with served.store.write() as tx:
        approve_request(tx, request["code"], Tier.MEMBER, "owner")
    eventually(lambda: len(served.posts(group)) == 2, "the message to the group")
    assert "group is now allowed" in served.posts(group)[1]


def test_a_stranger_costs_one_row_and_one_reply_an_hour(served: Account) -> None:
    for each in range(20):
        served.say(f"hello {each}", STRANGER)
    served.say("from a member")
    served.stored("from a member")
    (row,) = (
        each for each in rows(served.store, SENDERS) if each["sender_id"] == served.person(STRANGER)
    )
    assert row["tier"] is None
    assert not [
        each for each in rows(served.store, CHATS) if each["chat"] == served.direct(STRANGER)
    ]
    code_of(served)
    assert len(served.posts(served.direct(STRANGER))) == 1
    assert len(rows(served.store, RESPONSES)) == 1


def test_a_blocked_person_gets_no_answer(served: Account) -> None:
    served.pair(2, Tier.BLOCKED)
    served.say("hello", 2)
    served.say("/whoami", 2)
    served.say("from a member")
    served.stored("from a member")
    assert not rows(served.store, RESPONSES)


@pytest.mark.parametrize(
    "command", ["/restart", "/approve ABCD2345", "/pause coder", "/resume coder"]
)
def test_a_member_cannot_do_what_the_owner_can(served: Account, command: str) -> None:
    served.say(command)
    eventually(lambda: any("Only the owner" in each for each in served.posts()), "the refusal")
    assert not rows(served.store, MESSAGES)


def test_a_guest_writes_to_the_default_agent_whatever_the_text_begins_with(served: Account) -> None:
    from tests.conformance.verbs import hire

    hire(served.store, "writer")
    served.pair(2, Tier.GUEST)
    served.say("@writer hello", 2)
    served.stored("@writer hello")
    assert [each["agent"] for each in served.messages()] == ["coder"]


def test_a_group_must_be_let_in_and_a_mention_decides(served: Account) -> None:
    if not served.kind.groups:
        pytest.skip("the platform has no groups")
    group = served.platform.chat(False)
    served.say("not let in", chat=group)
    eventually(lambda: bool(served.posts(group)), "the reply with the code")
    assert "not allowed" in served.posts(group)[0]
    served.allow(group)
    served.say("no mention", chat=group, mention=False)
    served.say("with a mention", chat=group)
    served.stored("with a mention")


def test_an_owner_allows_a_group_from_inside(served: Account) -> None:
    if not served.kind.groups:
        pytest.skip("the platform has no groups")
    group = served.platform.chat(False)
    served.pair(2, Tier.OWNER)
    served.say("/allow", chat=group)
    eventually(lambda: bool(served.posts(group)), "the reply to a member")
    served.say("/allow", 2, chat=group)
    eventually(
        lambda: any("group is now allowed" in each for each in served.posts(group)), "the reply"
    )
    assert "not allowed" in served.posts(group)[0]
    served.say("hello", chat=group)
    served.stored("hello")


def test_texts_name_commands_as_people_write_them(served: Account) -> None:
    served.say("/help")
    prefix = "!" if served.channel.startswith("slack") else "/"
    eventually(lambda: any(f"{prefix}agents" in each for each in served.posts()), "the commands")
    assert not any("/agents" in each for each in served.posts()) or prefix == "/"


def test_in_a_group_for_everyone_strangers_are_guests(served: Account) -> None:
    if not served.kind.groups:
        pytest.skip("the platform has no groups")
    group = served.platform.chat(False)
    served.allow(group, Access.EVERYONE)
    served.say("from a stranger", STRANGER, chat=group)
    served.stored("from a stranger")
    served.say("/default coder", STRANGER, chat=group)
    eventually(lambda: any("Only paired people" in each for each in served.posts(group)), "refused")


def test_cve_2026_28392_every_way_in_has_the_same_decision(served: Account) -> None:
    served.pair(2, Tier.BLOCKED)
    for number in (2, STRANGER):
        id_ = served.say("hello", number)
        served.say("/agents", number)
        served.say("!status", number)
        driving.native_command(served, "agents", number)
        if served.kind.edits:
            served.platform.edit(served.direct(number), id_, "/agents")
            served.platform.edit(served.direct(number), id_, "hello again")
    code_of(served)
    served.say("from a member")
    served.stored("from a member")
    assert not served.posts(served.direct(2))
    (reply,) = served.posts(served.direct(STRANGER))
    assert "coder" not in reply
