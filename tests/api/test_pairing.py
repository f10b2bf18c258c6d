"""Channels and pairing over the API: what the owner decides, with the scope admin only."""

from __future__ import annotations

import pytest

from bullpen.core.access.keys import Scope
from bullpen.core.background import register_worker
from bullpen.core.channels.chats import Access, find_chat
from bullpen.core.channels.health import ChannelState, find_health, report_state
from bullpen.core.channels.pairing import request_group, request_pairing
from bullpen.core.channels.senders import Tier, find_tier
from bullpen.core.store.base import Store
from tests.api.served import Served

CHANNEL = "telegram"


def ask(inside: Store, sender: str, name: str = "Bob") -> str:
    """The code that an unpaired person gets."""
    with inside.write() as tx:
        code = request_pairing(tx, CHANNEL, sender, name)
    assert code is not None
    return code


def tier(inside: Store, sender: str) -> Tier | None:
    """What a person may do."""
    with inside.read() as tx:
        return find_tier(tx, CHANNEL, sender)


def test_a_request_is_listed_and_approved_as_tinyagis_clients_do_it(
    served: Served, inside: Store
) -> None:
    code = ask(inside, "api-1")
    (pending,) = served.get("/api/pairing")["pending"]
    assert (pending["channel"], pending["senderId"], pending["sender"]) == (CHANNEL, "api-1", "Bob")
    assert pending["code"] == code
    assert pending["createdAt"]
    assert pending["lastSeenAt"]
    done = served.post("/api/pairing/approve", {"code": code.lower()})
    assert done["ok"] is True
    assert (done["entry"]["tier"], done["entry"]["kind"]) == ("member", "person")
    listed = served.get("/api/pairing")
    assert listed["pending"] == []
    assert "api-1" in [each["senderId"] for each in listed["approved"]]
    again = served.refused("POST", "/api/pairing/approve", {"code": code})
    assert again == (404, "unknown_code")
    served.ok("DELETE", f"/api/pairing/{CHANNEL}/api-1")
    assert tier(inside, "api-1") is None
    gone = served.refused("DELETE", f"/api/pairing/{CHANNEL}/api-1")
    assert gone == (404, "unknown_sender")


def test_a_request_can_be_dismissed(served: Served, inside: Store) -> None:
    code = ask(inside, "api-2")
    served.ok("DELETE", f"/api/pairing/pending/{code}")
    assert served.get("/api/pairing")["pending"] == []
    assert tier(inside, "api-2") is None
    assert served.refused("DELETE", f"/api/pairing/pending/{code}") == (404, "unknown_code")
    with inside.write() as tx:
        assert request_pairing(tx, CHANNEL, "api-2", "Bob") is None  # one reply an hour


def test_a_tier_and_the_access_of_a_group_are_changed(served: Served, inside: Store) -> None:
    assert served.refused("PUT", f"/api/pairing/{CHANNEL}/@bob", {"tier": "guest"})[0] == 400
    path = f"/api/pairing/{CHANNEL}/4713"
    served.ok("PUT", path, {"tier": "guest"})
    assert tier(inside, "4713") is Tier.GUEST
    served.ok("PUT", path, {"tier": "blocked"})
    assert tier(inside, "4713") is Tier.BLOCKED
    for body in ({}, {"tier": "king"}, {"tier": "guest", "access": "members"}):
        assert served.refused("PUT", path, body)[0] == 400, body
    with inside.write() as tx:
        code = request_group(tx, CHANNEL, "-1001", "office")
    served.post("/api/pairing/approve", {"code": code, "access": "everyone"})
    served.ok("PUT", f"/api/pairing/{CHANNEL}/-1001", {"access": "members"})
    with inside.read() as tx:
        chat = find_chat(tx, CHANNEL, "-1001")
    assert chat is not None
    assert chat.access is Access.MEMBERS
    unknown = served.refused("PUT", "/api/pairing/telegrm/1", {"tier": "guest"})
    assert unknown == (404, "unknown_channel")


@pytest.mark.parametrize("scope", [each for each in Scope if each is not Scope.ADMIN])
def test_nobody_without_the_scope_admin_sees_codes_or_decides(
    served: Served, inside: Store, scope: Scope
) -> None:
    code = ask(inside, f"api-{scope}")
    key = served.key(scope)
    for method, path, body in (
        ("GET", "/api/pairing", None),
        ("POST", "/api/pairing/approve", {"code": code}),
        ("PUT", f"/api/pairing/{CHANNEL}/api-{scope}", {"tier": "owner"}),
        ("POST", f"/api/channels/{CHANNEL}/pause", None),
        ("POST", f"/api/channels/{CHANNEL}/test", None),
    ):
        assert served.refused(method, path, body, token=key) == (403, "scope_too_small"), path
    assert tier(inside, f"api-{scope}") is None
    served.ok("DELETE", f"/api/pairing/pending/{code}")


def test_a_key_for_some_agents_decides_about_no_person(served: Served) -> None:
    key = served.key(Scope.ADMIN, agents=("coder",))
    assert served.refused("GET", "/api/pairing", None, token=key) == (403, "out_of_reach")
    assert served.refused("GET", "/api/channels", None, token=key) == (403, "out_of_reach")


def test_channels_are_listed_paused_and_resumed(served: Served, inside: Store) -> None:
    with inside.write() as tx:
        register_worker(tx, CHANNEL)
        report_state(tx, CHANNEL, ChannelState.DOWN, code="conflict", reason="another poller")
    every = {each["channel"]: each for each in served.get("/api/channels?all=true")}
    assert {"discord", "slack", "sms", "telegram", "whatsapp"} <= every.keys()
    assert every["discord"]["state"] == "not set up"
    assert served.get("/api/channels/slack-sage")["missing"] == [
        "slack-sage.bot_token",
        "slack-sage.app_token",
    ]
    one = served.get(f"/api/channels/{CHANNEL}")
    # Its client runs, although this process knows none of its settings.
    assert (one["state"], one["code"], one["missing"]) == ("down", "conflict", [])
    paused = served.post(f"/api/channels/{CHANNEL}/pause")
    assert paused["channel"]["paused"] is True
    with inside.read() as tx:
        health = find_health(tx, CHANNEL)
    assert health is not None
    assert health.paused
    assert served.post(f"/api/channels/{CHANNEL}/resume")["channel"]["paused"] is False
    for path in ("/api/channels/web", "/api/channels/nonesuch"):
        assert served.refused("GET", path) == (404, "unknown_channel")
    assert served.refused("POST", f"/api/channels/{CHANNEL}/test")[0] == 409
