"""Advisories and complaints of other projects that concern the base client: one test each."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from bullpen.channels import listener
from bullpen.channels.incoming import commands
from bullpen.channels.outgoing import queue
from bullpen.channels.outgoing.parts import Parts
from bullpen.core.channels.chats import Access
from bullpen.core.channels.pairing import approve
from bullpen.core.channels.senders import Tier, revoke
from bullpen.core.clock import HOUR
from bullpen.core.models import EVENTS, SENDERS
from bullpen.core.roster.agents import Context, get_agent
from bullpen.core.roster.sessions import session_key
from tests.channels.conformance import driving
from tests.channels.conformance.conftest import MEMBERS, Account
from tests.channels.conformance.test_absence import LaterClock, away, clock
from tests.channels.conformance.test_access import STRANGER, code_of
from tests.channels.conformance.test_edits import at_work, edit, editing
from tests.channels.served import AGENT
from tests.conformance.verbs import done, rows
from tests.processor.working import eventually

__all__ = ["away", "clock", "editing"]

CLIENTS = {"files/fetching.py", "slack/api.py", "twilio/api.py"}
"""The fetching client, and the clients of the platforms' own addresses."""
ONE_CHANNEL = {
    "test_ghsa_2gvc_4f3c_2855_a_tier_from_a_direct_chat_opens_no_group": "telegram",
    "test_oc_44721_a_button_runs_the_offer_that_it_stands_below": "slack",
    "test_c10_what_only_the_owner_may_do_is_refused_to_everyone_else": "discord",
}
OFFERED = "is already working"


def test_nanobot_an_empty_list_of_people_lets_nobody_in(served: Account) -> None:
    with served.store.write() as tx:
        for number in range(1, MEMBERS + 1):
            revoke(tx, served.channel, served.person(number), by="owner")
    for number in range(1, MEMBERS + 1):
        served.say("hello", number)
    eventually(lambda: bool(served.posts()), "the reply with the code")
    served.pair(1)
    served.say("after")
    served.stored("after")


def test_cve_2026_2577_nothing_listens_but_on_loopback() -> None:
    assert listener.LISTEN_HOST == "127.0.0.1"
    package = Path(listener.__file__).parent
    binding = ("create_server(", "TCPSite(", "start_server(", "SockSite(")
    found = {
        each.name for each in package.rglob("*.py") if any(b in each.read_text() for b in binding)
    }
    assert found == {"listener.py"}
    assert socket.inet_aton(listener.LISTEN_HOST)[0] == 127


def test_ghsa_2gvc_4f3c_2855_a_tier_from_a_direct_chat_opens_no_group(served: Account) -> None:
    if not served.kind.groups:
        pytest.skip("the platform has no groups")
    group = served.platform.chat(False)
    served.say("/agents", chat=group)
    eventually(lambda: bool(served.posts(group)), "the reply with the code")
    (reply,) = served.posts(group)
    assert "not allowed" in reply
    served.allow(group, Access.EVERYONE)
    served.say("from a stranger", STRANGER, chat=group)
    served.stored("from a stranger")
    served.say("and directly", STRANGER)
    code_of(served)  # a guest of a group is a stranger elsewhere
    assert served.texts() == ["from a stranger"]
    served.say("/approve ABCD2345", chat=group)
    eventually(lambda: any("Only the owner" in each for each in served.posts(group)), "refused")


def test_ghsa_2xcp_x87w_q377_nobody_chooses_the_session_of_somebody_else(served: Account) -> None:
    other = served.person(1)
    served.pair(2)
    for text in (f"#{other}", f"{served.channel}\x1f#{other}", '{"conversation_id": "x"}'):
        served.say(f"{text} hello", 2)
    served.say("hello")
    eventually(lambda: bool(of_person(served, 1)), "the other message")
    with served.store.read() as tx:
        agent = replace(get_agent(tx, AGENT), context=Context.SENDER)
    keys = {(each.sender_id, session_key(agent, each)) for each in served.run_all()}
    assert len({key for _, key in keys}) == len({sender for sender, _ in keys}) == 2


def of_person(served: Account, number: int) -> list[str]:
    """The texts of a person."""
    return [
        str(each["message"])
        for each in served.messages()
        if each["sender_id"] == served.person(number)
    ]


def test_cve_2026_9350_what_catch_up_finds_is_authorised_like_live_messages(away: Account) -> None:
    away.pair(2, Tier.BLOCKED)
    away.say("from a blocked person", 2)
    away.say("from a stranger", STRANGER)
    away.say("from a member")
    away.start()
    eventually(lambda: "from a member" in away.texts(), "the member's message")
    away.say("after")
    eventually(lambda: "after" in away.texts(), "the next message")
    assert away.texts() == ["before", "before", "from a member", "after"]


@pytest.mark.parametrize("name", ["../../../outside.txt", "/tmp/outside.txt", "..\\outside.txt"])
def test_cve_2026_7396_the_name_of_a_file_leads_nowhere(served: Account, name: str) -> None:
    home = served.store.settings.home
    served.say("a file", files=[(name, b"data")])
    eventually(
        lambda: any(each["files"] not in (None, "[]") for each in served.messages()), "its file"
    )
    found = [each for each in home.rglob("*") if each.is_file() and each.read_bytes() == b"data"]
    assert found
    assert {each.parent for each in found} == {served.store.settings.files}


def test_nemoclaw_3729_whoami_names_what_decides_about_a_person(served: Account) -> None:
    served.pair(2, Tier.GUEST)
    served.say("/whoami", 2)
    chat = served.direct(2)
    eventually(lambda: bool(served.posts(chat)), "the answer")
    (answer,) = served.posts(chat)
    for part in (served.person(2), served.channel, "direct chat", "tier is guest"):
        assert part in answer


def test_oc_39138_responses_that_are_out_of_date_are_not_sent_at_the_start(
    away: Account, clock: LaterClock
) -> None:
    old = [away.respond(f"out of date {each}") for each in range(5)]
    clock.ahead = (away.store.settings.response_hours + 1) * HOUR
    new = away.respond("of today")
    away.start()
    away.ends(new, "acked")
    assert away.posts() == ["of today"]
    eventually(lambda: {away.response(each)["status"] for each in old} == {"dead"}, "all are dead")


def test_oc_34039_a_message_that_comes_again_during_and_after_its_run_runs_once(
    served: Account,
) -> None:
    first, second = served.say("first"), served.say("second", 2)
    served.stored("first", "second")
    claimed = served.claim()
    for each in (first, second):
        served.platform.redeliver(each)
    done(served.store, claimed.token)
    for each in (first, second):
        served.platform.redeliver(each)
    served.say("after", 3)
    eventually(lambda: "after" in served.texts(), "the next message")
    ran = [*claimed.messages, *served.run_all()]
    assert sorted(each.message for each in ran) == ["after", "first", "second"]


def test_nc_2796_one_response_that_cannot_be_read_stops_no_other(
    served: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = Parts.of

    def wrong(delivery: object, *rest: object) -> object:
        if getattr(delivery, "message", "") == "poison":
            raise ZeroDivisionError
        return right(delivery, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Parts, "of", staticmethod(wrong))
    poison = served.respond("poison")
    others = [served.respond(f"to {number}", number=number) for number in (2, 3, 4)]
    for each in others:
        served.ends(each, "acked")
    assert served.response(poison)["status"] != "acked"


def test_oc_44721_a_button_runs_the_offer_that_it_stands_below(editing: Account) -> None:
    """Also after a restart (OC #64664), and a newer offer changes nothing."""
    id_, _ = at_work(editing)
    for number, text in enumerate(("the first edit", "the second edit"), 1):
        edit(editing, editing.direct(), id_, text)
        eventually(lambda: len(offers(editing)) == number, "the offer")  # noqa: B023
    first, _ = offers(editing)
    editing.stop()
    editing.start()
    editing.up()
    editing.say(f"/rerun {first}")
    editing.stored("helo", "the first edit")


def offers(served: Account) -> list[str]:
    """The ids of the offers, oldest first."""
    return [str(each["message_id"]) for each in served.responses() if OFFERED in each["message"]]


def test_oc_53120_a_code_of_pairing_outlives_a_restart_and_expires_to_no(
    away: Account, clock: LaterClock
) -> None:
    away.start()
    away.up()
    away.say("hello", STRANGER)
    code = code_of(away)
    away.stop()
    clock.ahead = 2 * HOUR
    with away.store.write() as tx:
        assert approve(tx, away.channel, code, Tier.MEMBER, by="owner") is None
    clock.ahead = 0
    with away.store.write() as tx:
        assert approve(tx, away.channel, code, Tier.MEMBER, by="owner") is not None
        assert approve(tx, away.channel, code, Tier.OWNER, by="owner") is None


def test_oc_55549_a_code_names_one_person_and_a_member_cannot_use_it(served: Account) -> None:
    served.say("hello", STRANGER)
    code = code_of(served)
    served.say(f"/approve {code}")
    served.say(f"/approve {code}", STRANGER)
    eventually(lambda: any("Only the owner" in each for each in served.posts()), "the refusal")
    tiers = {each["sender_id"]: each["tier"] for each in rows(served.store, SENDERS)}
    assert tiers[served.person(STRANGER)] is None
    served.pair(3, Tier.OWNER)
    served.say(f"/approve {code}", 3)
    chat = served.direct(3)
    eventually(lambda: any("Approved" in each for each in served.posts(chat)), "approved")
    tiers = {each["sender_id"]: each["tier"] for each in rows(served.store, SENDERS)}
    assert tiers[served.person(STRANGER)] == "member"


def test_c10_what_only_the_owner_may_do_is_refused_to_everyone_else(served: Account) -> None:
    only = [each.name for each in commands.COMMANDS if each.tier is Tier.OWNER]
    assert {"approve", "allow", "pause", "resume", "cancel", "restart"} <= set(only)
    for name in only:
        served.say(f"/{name} coder")
        driving.native_command(served, name)
    served.pair(2, Tier.GUEST)
    served.say("/default coder", 2)
    served.say("/new coder", 2)
    eventually(lambda: len(served.posts()) >= len(only), "the refusals")
    assert all("Only the owner" in each for each in served.posts())
    chat = served.direct(2)
    eventually(lambda: len(served.posts(chat)) == 2, "those of the guest")
    assert all("Only paired people" in each for each in served.posts(chat))


def test_c1_a_response_that_comes_while_others_are_sent_is_sent_without_a_wait(
    stopped: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "POLL_SECONDS", 600.0)  # only the wake-up of a commit is left
    served = stopped
    served.start()
    served.up()
    ids = []
    for each in range(20):
        ids.append(served.respond(f"number {each}"))
        if each % 5 == 0:
            served.ends(ids[-1], "acked")
    served.seen(*(f"number {each}" for each in range(20)))


def test_c2_nothing_is_acked_that_the_platform_did_not_take(served: Account) -> None:
    served.platform.offline()
    id_ = served.respond("hello")
    eventually(lambda: bool(served.response(id_)["last_error"]), "it is tried")
    assert served.response(id_)["status"] in ("pending", "leased", "unknown")
    assert not served.posts()
    served.platform.online()
    served.ends(id_, "acked")
    served.seen("hello")


def test_nc_2902_what_leads_to_no_run_is_answered_at_once(served: Account) -> None:
    served.say("@nobody hello")
    served.say("/restart", 2)
    served.say("hello", STRANGER)
    for number in (1, 2, STRANGER):
        chat = served.direct(number)
        eventually(lambda: bool(served.posts(chat)), f"an answer to {number}")  # noqa: B023
    assert not served.messages()


def test_nc_2423_a_delivery_that_failed_for_good_is_an_event_with_its_reason(
    served: Account,
) -> None:
    served.platform.fail_next("refused")
    id_ = served.respond("hello")
    row = served.ends(id_, "dead")
    (event,) = (
        each
        for each in rows(served.store, EVENTS)
        if each["message_id"] == row["message_id"] and "dead" in each["type"]
    )
    assert row["last_error"] in str(event)


def test_every_fetch_goes_through_one_client_whose_address_is_checked() -> None:
    """CVE-2026-34504: one more place that opens a URL of somebody else is one more hole."""
    package = Path(listener.__file__).parent
    opening = ("ClientSession(", "AsyncClient(", "urlopen(", "requests.get(", "HttpClient(")
    found = {
        str(each.relative_to(package))
        for each in package.rglob("*.py")
        if any(name in each.read_text() for name in opening)
    }
    assert found == CLIENTS
