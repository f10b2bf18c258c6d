"""Conversations over the API: all of one at a glance, ended, or let go on."""

from __future__ import annotations

from typing import Any

import pytest

from bullpen.core.access.keys import Scope
from bullpen.core.answers.complete import complete
from bullpen.core.message import ErrorKind, RunOutput, Usage
from bullpen.core.queue.manage import hold
from bullpen.core.store.base import Store
from tests.api.served import Served
from tests.api.work import died, hired, sent, status
from tests.conformance.verbs import do, done, failed, take, to_archive

USAGE = Usage(provider="acme", model="m1", input_tokens=7, output_tokens=2, cost=0.25)


def answered(store: Store, agent: str, text: str) -> None:
    """The agent takes what waits for it, and says this."""
    claim = take(store, agent)
    with store.write() as tx:
        complete(tx, claim, RunOutput(text=text, usage=USAGE), ())


def trace(served: Served, conversation: str) -> dict[str, Any]:
    """All of a conversation."""
    found: dict[str, Any] = served.get(f"/api/conversations/{conversation}")
    return found


def test_a_trace_has_every_message_run_answer_and_handoff(served: Served, inside: Store) -> None:
    ann, bob = hired(inside), hired(inside)
    root = sent(served, ann, "build it")
    answered(inside, ann, f"It is built.\n\n[@{bob}: read it]")
    answered(inside, bob, "It is good.")
    found = trace(served, root)
    assert (found["conversation_id"], found["state"]) == (root, "at_rest")
    first, second = found["messages"]
    assert (first["message_id"], first["agent"], first["parent_id"]) == (root, ann, None)
    assert (second["agent"], second["parent_id"], second["hop"]) == (bob, root, 1)
    assert [each["message_id"] for each in found["attempts"]] == [root, second["message_id"]]
    assert [each["agent"] for each in found["responses"]] == [ann, bob]
    (handoff,) = found["handoffs"]
    assert (handoff["from_agent"], handoff["agent"], handoff["parent_id"]) == (ann, bob, root)
    assert handoff["message_id"] == second["message_id"]
    assert found["totals"] == {
        "messages": 2,
        "attempts": 2,
        "cost": 0.5,
        "input_tokens": 14,
        "output_tokens": 4,
    }


def test_a_trace_says_when_what_was_done(served: Served, inside: Store) -> None:
    agent = hired(inside)
    root = sent(served, agent)
    (step,) = trace(served, root)["messages"]
    times = ("claimed_at", "started_at", "finished_at")
    assert [step[name] for name in times] == [None] * 3
    take(inside, agent)
    (step,) = trace(served, root)["messages"]
    assert step["claimed_at"] >= step["created_at"]
    assert step["finished_at"] is None
    served.post(f"/api/conversations/{root}/cancel", {})
    (step,) = trace(served, root)["messages"]
    assert step["created_at"] <= step["claimed_at"] <= step["started_at"] <= step["finished_at"]


def test_a_conversation_is_under_way_held_or_at_rest(served: Served, inside: Store) -> None:
    ann, bob = hired(inside), hired(inside)
    root = sent(served, ann)
    assert trace(served, root)["state"] == "under_way"
    answered(inside, ann, f"[@{bob}: go on]")
    child = trace(served, root)["messages"][1]["message_id"]
    assert trace(served, root)["state"] == "under_way"
    do(inside, hold, child, "wait")
    assert trace(served, root)["state"] == "held"
    served.post(f"/api/conversations/{root}/let-go")
    assert trace(served, root)["state"] == "under_way"
    answered(inside, bob, "done")
    assert trace(served, root)["state"] == "at_rest"


def test_what_is_archived_is_still_shown(served: Served, inside: Store) -> None:
    ann, bob = hired(inside), hired(inside)
    root = sent(served, ann)
    answered(inside, ann, f"Ask. [@{bob}: go on]")
    answered(inside, bob, "done")
    before = trace(served, root)
    for each in before["messages"]:
        to_archive(inside, each["message_id"])
    after = trace(served, root)
    assert [each["archived"] for each in after["messages"]] == [True, True]
    for found in (before, after):
        for each in found["messages"]:
            del each["archived"]
    assert after == before


def test_who_was_answered_along_is_told_with_whom(served: Served, inside: Store) -> None:
    agent = hired(inside)
    first, second = sent(served, agent, "one"), sent(served, agent, "two")
    answered(inside, agent, "both")
    (step,) = trace(served, second)["messages"]
    assert (step["status"], step["answered_with"]) == ("completed", first)
    (step,) = trace(served, first)["messages"]
    assert step["answered_with"] is None
    assert [each["message"] for each in trace(served, first)["responses"]] == ["both"]


def test_every_try_is_told(served: Served, inside: Store) -> None:
    agent = hired(inside)
    root = sent(served, agent)
    failed(inside, take(inside, agent).token, retry_after=0)
    failed(inside, take(inside, agent).token, ErrorKind.PERMANENT, "no way")
    found = trace(served, root)
    assert [each["error_kind"] for each in found["attempts"]] == ["retryable", "permanent"]
    (answer,) = found["responses"]
    assert "no way" in answer["message"]


def test_a_conversation_is_ended_as_a_whole_and_no_other_is(served: Served, inside: Store) -> None:
    ann, bob = hired(inside), hired(inside)
    root = sent(served, ann)
    answered(inside, ann, f"[@{bob}: one] [@{bob}: two]")
    other = sent(served, bob, senderId="U2")
    take(inside, bob, limit=1)
    body = {"reason": "no more"}
    assert served.post(f"/api/conversations/{root}/cancel", body) == {"ok": True, "count": 2}
    found = trace(served, root)
    assert found["state"] == "at_rest"
    assert [each["status"] for each in found["messages"]] == ["completed", "cancelled", "cancelled"]
    assert found["messages"][1]["last_error"] == "no more"
    assert status(served, other) == "pending"
    assert served.post(f"/api/conversations/{root}/cancel", {}) == {"ok": True, "count": 0}


def test_a_list_has_each_conversation_once_the_newest_first(served: Served, inside: Store) -> None:
    ann, bob = hired(inside), hired(inside)
    first = sent(served, ann, "one", channel="traced")
    answered(inside, ann, f"[@{bob}: go on]")
    second = sent(served, ann, "two", channel="traced")
    path = "/api/conversations?channel=traced"
    newest, oldest = served.get(path)
    assert (newest["conversation_id"], newest["state"], newest["messages"]) == (
        second,
        "under_way",
        1,
    )
    assert (oldest["conversation_id"], oldest["message"], oldest["messages"]) == (first, "one", 2)
    assert (oldest["status"], oldest["cost"]) == ("completed", 0.25)
    assert [each["conversation_id"] for each in served.get(f"{path}&since_id=0")] == [first, second]
    assert served.get(f"{path}&agent={bob}") == []
    assert len(served.get(f"{path}&agent={ann}&limit=1")) == 1


def test_a_key_sees_a_conversation_only_if_it_reaches_all_who_have_a_part(
    served: Served, inside: Store
) -> None:
    ann, bob = hired(inside), hired(inside)
    root = sent(served, ann)
    answered(inside, ann, f"[@{bob}: go on]")
    one = served.key(Scope.READ, Scope.APPROVE, agents=(ann,))
    both = served.key(Scope.READ, Scope.APPROVE, agents=(ann, bob))
    out = (403, "out_of_reach")
    path = f"/api/conversations/{root}"
    assert served.refused("GET", path, token=one) == out
    assert served.refused("POST", f"{path}/cancel", {}, token=one) == out
    assert served.refused("POST", f"{path}/let-go", token=one) == out
    assert served.refused("GET", "/api/conversations", token=one) == out
    assert served.get(f"/api/conversations?agent={ann}", token=one) != []
    assert trace(served, root)["state"] == "under_way"
    assert served.get(path, token=both)["conversation_id"] == root
    assert served.post(f"{path}/cancel", {}, token=both)["count"] == 1


def test_a_conversation_that_is_not_there_is_said_not_to_be(
    served: Served, subtests: pytest.Subtests
) -> None:
    for name in ["nothing", "%00", "x" * 200, "%F0%9F", "..", "'; --"]:
        with subtests.test(name=name):
            for method, path, body in (
                ("GET", "", None),
                ("POST", "/cancel", {}),
                ("POST", "/let-go", {}),
            ):
                assert served.refused(method, f"/api/conversations/{name}{path}", body)[0] in (
                    400,
                    404,
                )


def test_what_waits_for_a_removed_agent_is_said_to(served: Served, inside: Store) -> None:
    agent = hired(inside)
    root = died(served, inside, agent, ErrorKind.NEEDS_PERSON)
    served.post(f"/api/conversations/{root}/let-go")
    done(inside, take(inside, agent).token)
    do(inside, hold, sent(served, agent), "wait")
    (row,) = served.get(f"/api/queue/held?agent={agent}")
    served.post(f"/api/lanes/{agent}/archive", {})
    refused = served.refused("POST", f"/api/conversations/{row['conversation_id']}/let-go")
    assert refused == (409, "lane_closed")
