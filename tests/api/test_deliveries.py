"""Channel clients outside of Bullpen: leased, sent part by part, acked; nothing twice unsaid."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from bullpen.core.access.keys import Scope
from bullpen.core.message import ReplyTo
from bullpen.core.outbox.manage import drop_response
from bullpen.core.store.base import Store
from tests.api.served import Served
from tests.api.work import hired
from tests.conformance.verbs import do, done, send, take
from tests.processor.working import eventually

NUMBERS = itertools.count(1)
VERBS = ("begin-part", "end-part", "ack-leased", "reschedule", "undeliverable", "unknown")


@pytest.fixture
def channel() -> str:
    """A channel of this test alone."""
    return f"wire{next(NUMBERS)}"


@pytest.fixture
def agent(inside: Store) -> str:
    """Who answers."""
    return hired(inside)


def answered(store: Store, agent: str, channel: str, text: str = "hello") -> str:
    """A question on this channel that was answered; gives its id."""
    to = ReplyTo("C1", "T1", "M1")
    message = send(store, text, agent, channel=channel, sender="Ada", sender_id="U1", reply_to=to)
    done(store, take(store, agent).token)
    return message


def lease(served: Served, channel: str, **more: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    """Take what is to be delivered."""
    found = served.post("/api/responses/lease", {"channel": channel, **more})
    return list(found["responses"])


def lease_one(served: Served, channel: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """Take the one that is to be delivered."""
    (found,) = lease(served, channel, **more)
    return found


def say(served: Served, verb: str, token: str, **more: object) -> None:
    """Tell what became of a delivery."""
    assert served.post(f"/api/responses/{verb}", {"token": token, **more}) == {"ok": True}


def shown(served: Served, message: str) -> dict[str, Any]:
    """The answer to this message."""
    (found,) = served.get(f"/api/responses?message_id={message}")
    return dict(found)


def test_an_answer_is_leased_sent_and_acked(
    served: Served, inside: Store, agent: str, channel: str
) -> None:
    message = answered(inside, agent, channel)
    found = lease_one(served, channel, worker="client-1")
    assert (found["message_id"], found["message"], found["agent"]) == (message, "done", agent)
    assert (found["sender"], found["sender_id"]) == ("Ada", "U1")
    assert found["reply_to"] == {"chat": "C1", "thread": "T1", "message": "M1"}
    assert (found["delivery_attempts"], found["parts_sent"]) == (1, 0)
    assert found["possible_duplicate"] is False
    for part in ("p1", "p2"):
        say(served, "begin-part", found["token"])
        say(served, "end-part", found["token"], receipt=part)
    assert shown(served, message)["partsSent"] == 2
    say(served, "ack-leased", found["token"])
    assert shown(served, message)["status"] == "acked"
    assert lease(served, channel) == []


def test_what_one_has_leased_no_other_gets_until_the_lease_is_over(
    served: Served, inside: Store, agent: str, channel: str
) -> None:
    answered(inside, agent, channel)
    kept = lease_one(served, channel, lease=3600)
    assert lease(served, channel) == []
    assert served.get(f"/api/responses/pending?channel={channel}") == []
    say(served, "reschedule", kept["token"], error="later", retry_after=0, counted=False)
    first = lease_one(served, channel, lease=1)
    again: list[dict[str, Any]] = []

    def another_one_has_it() -> bool:
        again.extend(lease(served, channel))
        return bool(again)

    eventually(another_one_has_it, "the lease is over")
    body = {"token": first["token"]}
    assert served.refused("POST", "/api/responses/begin-part", body) == (409, "stale_token")
    say(served, "begin-part", again[0]["token"])
    # Nothing was tried under the lease that is over.
    assert again[0]["delivery_attempts"] == 1


def test_one_that_is_abandoned_in_the_middle_of_a_part_is_unknown_and_sent_again_with_a_word(
    served: Served, inside: Store, agent: str, channel: str
) -> None:
    message = answered(inside, agent, channel)
    found = lease_one(served, channel)
    say(served, "begin-part", found["token"])
    say(served, "unknown", found["token"], error="no answer to the send")
    seen = shown(served, message)
    assert (seen["status"], seen["lastError"]) == ("unknown", "no answer to the send")
    assert lease(served, channel) == []
    served.post(f"/api/responses/{seen['id']}/send-again")
    assert lease_one(served, channel)["possible_duplicate"] is True


def test_a_rate_limit_makes_it_wait_and_costs_no_try(
    served: Served, inside: Store, agent: str, channel: str
) -> None:
    message = answered(inside, agent, channel)
    token = lease_one(served, channel)["token"]
    say(served, "reschedule", token, error="slow down", retry_after=60, counted=False)
    seen = shown(served, message)
    assert (seen["status"], seen["deliveryAttempts"]) == ("pending", 0)
    assert seen["availableAt"] - seen["timestamp"] >= 60_000
    assert lease(served, channel) == []


def test_after_the_last_try_it_is_dead(
    served: Served, inside: Store, agent: str, channel: str
) -> None:
    message = answered(inside, agent, channel)
    tries = inside.settings.delivery_attempts
    for _ in range(tries):
        token = lease_one(served, channel)["token"]
        say(served, "reschedule", token, error="no route", retry_after=0)
    seen = shown(served, message)
    assert (seen["status"], seen["lastError"], seen["deliveryAttempts"]) == (
        "dead",
        "no route",
        tries,
    )


def test_what_can_never_be_sent_is_dead_at_once(
    served: Served, inside: Store, agent: str, channel: str
) -> None:
    message = answered(inside, agent, channel)
    say(served, "undeliverable", lease_one(served, channel)["token"], error="nobody\x00there")
    seen = shown(served, message)
    assert (seen["status"], seen["lastError"]) == ("dead", "nobody\N{REPLACEMENT CHARACTER}there")


def test_who_is_late_changes_nothing(
    served: Served, inside: Store, agent: str, channel: str
) -> None:
    message = answered(inside, agent, channel)
    found = lease_one(served, channel)
    do(inside, drop_response, found["id"], "not wanted")
    before = shown(served, message)
    for verb in VERBS:
        more = {"error": "x"} if verb in ("reschedule", "undeliverable", "unknown") else {}
        body = {"token": found["token"], **more}
        assert served.refused("POST", f"/api/responses/{verb}", body) == (409, "stale_token")
    assert shown(served, message) == before


def test_what_is_no_token_is_stale(served: Served, subtests: pytest.Subtests) -> None:
    for verb in VERBS:
        for token in ["", "nonsense", "1.x\x00", "9" * 30 + ".a", "0.a", "\uff11.a"]:
            with subtests.test(verb=verb, token=token):
                more = {"error": "x"} if verb in ("reschedule", "undeliverable", "unknown") else {}
                refused = served.refused("POST", f"/api/responses/{verb}", {"token": token, **more})
                assert refused == (409, "stale_token")


def test_a_lease_that_cannot_be_is_refused(served: Served, subtests: pytest.Subtests) -> None:
    changes: list[dict[str, object]] = [
        {"channel": "Not One"},
        {"channel": None},
        {"worker": ""},
        {"worker": "a\x00b"},
        {"worker": "\ud800"},
        {"limit": 0},
        {"limit": 101},
        {"lease": 0},
        {"lease": 3601},
        {"wait": 5},
    ]
    for change in changes:
        with subtests.test(change=change):
            body = {"channel": "slack", **change}
            assert served.refused("POST", "/api/responses/lease", body)[0] == 400


def test_it_is_for_keys_that_speak_for_people_and_reach_everyone(served: Served) -> None:
    body = {"channel": "slack"}
    reader = served.key(Scope.READ, Scope.CLAIM)
    refused = served.refused("POST", "/api/responses/lease", body, token=reader)
    assert refused == (403, "scope_too_small")
    limited = served.key(Scope.PUBLISH, agents=("worker",))
    refused = served.refused("POST", "/api/responses/lease", body, token=limited)
    assert refused == (403, "out_of_reach")
    for verb in VERBS:
        more = {"error": "x"} if verb in ("reschedule", "undeliverable", "unknown") else {}
        asked = {"token": "1.a", **more}
        assert served.refused("POST", f"/api/responses/{verb}", asked, token=limited)[0] == 403
