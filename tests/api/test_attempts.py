"""Attempts over the API: each run that has ended."""

from __future__ import annotations

import pytest

from bullpen.core.access.keys import Scope
from bullpen.core.message import Answer, ErrorKind, Outcome, Usage
from bullpen.core.store.base import Store
from tests.api.served import Served
from tests.api.work import hired, sent
from tests.conformance.verbs import done, failed, take

USAGE = Usage(provider="acme", model="m1", input_tokens=7, output_tokens=2, cost=0.25)
ANSWERED = Outcome(answers=(Answer(message="done"),), usage=USAGE)


def test_a_run_is_told_with_what_it_took_and_when(served: Served, inside: Store) -> None:
    agent = hired(inside)
    message = sent(served, agent)
    sent(served, agent, "and this")
    done(inside, take(inside, agent).token, ANSWERED)
    (row,) = served.get(f"/api/attempts?agent={agent}")
    assert (row["message_id"], row["messages"], row["outcome"]) == (message, 2, "completed")
    assert (row["worker"], row["channel"], row["conversation_id"]) == ("worker-1", "api", message)
    assert (row["provider"], row["model"], row["cost"]) == ("acme", "m1", 0.25)
    assert (row["input_tokens"], row["output_tokens"], row["error"]) == (7, 2, None)
    assert row["enqueued_at"] <= row["claimed_at"] <= row["started_at"] <= row["finished_at"]


def test_runs_are_found_by_what_they_have_in_common(served: Served, inside: Store) -> None:
    agent, other = hired(inside), hired(inside)
    message = sent(served, agent)
    failed(inside, take(inside, agent).token, error="it broke 17 times", retry_after=0)
    failed(inside, take(inside, agent).token, ErrorKind.PERMANENT, "it broke 18 times")
    sent(served, other)
    done(inside, take(inside, other).token)
    path = f"/api/attempts?agent={agent}"
    latest, first = served.get(path)
    assert (first["error_kind"], latest["error_kind"]) == ("retryable", "permanent")
    assert first["fingerprint"] == latest["fingerprint"]
    assert served.get(f"{path}&error_kind=permanent") == [latest]
    assert served.get(f"{path}&outcome=completed") == []
    assert served.get(f"/api/attempts?message_id={message}&since_id=0") == [first, latest]
    assert served.get(f"/api/attempts?conversation_id={message}&limit=1") == [latest]
    assert {each["agent"] for each in served.get("/api/attempts?limit=3")} == {agent, other}


def test_the_list_pages_by_its_numbers(served: Served, inside: Store) -> None:
    agent = hired(inside)
    ids = []
    for number in range(5):
        ids.append(sent(served, agent, f"{number}"))
        done(inside, take(inside, agent).token)
    found, since = [], 0
    for _ in range(10):
        response = served.ask("GET", f"/api/attempts?agent={agent}&limit=2&since_id={since}")
        found += [each["message_id"] for each in response.json()]
        if "X-Next-Cursor" not in response.headers:
            break
        since = int(response.headers["X-Next-Cursor"])
    assert found == ids


def test_a_key_for_one_agent_must_name_it(served: Served, inside: Store) -> None:
    agent = hired(inside)
    key = served.key(Scope.READ, agents=(agent,))
    assert served.get(f"/api/attempts?agent={agent}", token=key) == []
    for query in ("", "?agent=worker", "?message_id=x"):
        refused = served.refused("GET", f"/api/attempts{query}", token=key)
        assert refused == (403, "out_of_reach")


def test_a_question_that_cannot_be_is_refused(served: Served, subtests: pytest.Subtests) -> None:
    for query in ["outcome=won", "error_kind=odd", "agent=%00", "message_id=%00", "since_id=1.5"]:
        with subtests.test(query=query):
            assert served.refused("GET", f"/api/attempts?{query}")[0] == 400
