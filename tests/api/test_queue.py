"""The queue over the API: its depth, what runs, and what waits for a person."""

from __future__ import annotations

import time

import pytest

from bullpen.core.access.keys import Scope
from bullpen.core.company import remove_agent
from bullpen.core.store.base import Store
from tests.api.served import Served
from tests.api.work import died, held, hired, sent, status
from tests.conformance.verbs import do, done, lane_row, take, to_archive, try_claim


def test_the_queue_is_told_in_the_names_of_the_documents_and_in_those_of_the_code(
    served: Served, inside: Store
) -> None:
    agent = hired(inside)
    before = served.get("/api/queue/status")
    assert set(before) == {
        *("pending", "processing", "dead", "held", "incoming", "queued", "completed", "outgoing")
    }
    for _ in range(3):
        sent(served, agent, senderId=None)
    first = take(inside, agent, limit=1)
    now = served.get("/api/queue/status")
    assert now["pending"] - before["pending"] == 2
    assert now["incoming"] == now["pending"]
    assert now["processing"] - before["processing"] == 1
    done(inside, first.token)
    died(served, inside, hired(inside))
    held(served, inside, hired(inside))
    now = served.get("/api/queue/status")
    grown = {name: now[name] - before[name] for name in ("completed", "dead", "held", "processing")}
    assert grown == {"completed": 1, "dead": 1, "held": 1, "processing": 0}
    assert now["outgoing"] > before["outgoing"]
    assert now["queued"] == 0


def test_every_agent_has_one_line_with_the_state_of_its_lane(served: Served, inside: Store) -> None:
    agent = hired(inside)
    sent(served, agent)
    sent(served, agent, senderId="U2")
    take(inside, agent, limit=1)
    rows = [row for row in served.get("/api/queue/agents") if row["agent"] == agent]
    assert rows == [
        {
            "agent": agent,
            "pending": 1,
            "queued": 0,
            "processing": 1,
            "state": "active",
            "reason": None,
        }
    ]


def test_what_runs_is_listed_with_who_runs_it_and_since_when(served: Served, inside: Store) -> None:
    agent = hired(inside)
    message = sent(served, agent, "run")
    run = take(inside, agent)
    (row,) = (each for each in served.get("/api/queue/processing") if each["agent"] == agent)
    assert row["messageId"] == message
    assert (row["channel"], row["sender"], row["message"]) == ("api", "Ada", "run")
    assert (row["status"], row["processAlive"], row["worker"]) == ("processing", True, "worker-1")
    assert row["startedAt"] == lane_row(inside, agent)["claimed_at"]
    assert 0 <= row["duration"] < 60_000
    done(inside, run.token)
    assert agent not in {each["agent"] for each in served.get("/api/queue/processing")}


def test_killing_ends_that_message_and_stops_its_run(served: Served, inside: Store) -> None:
    agent = hired(inside)
    message = sent(served, agent)
    take(inside, agent)
    (row,) = (each for each in served.get("/api/queue/processing") if each["agent"] == agent)
    killed = served.post(f"/api/queue/processing/{row['id']}/kill")
    assert killed == {"ok": True, "agent": agent, "processKilled": True}
    assert status(served, message) == "cancelled"


def test_killing_one_that_waits_leaves_the_one_that_runs_alone(
    served: Served, inside: Store
) -> None:
    agent = hired(inside)
    running = sent(served, agent)
    run = take(inside, agent)
    waiting = sent(served, agent, senderId="U2")
    killed = served.post(f"/api/queue/processing/{waiting}/kill")
    assert killed == {"ok": True, "agent": agent, "processKilled": False}
    assert (status(served, waiting), status(served, running)) == ("cancelled", "processing")
    done(inside, run.token)
    assert status(served, running) == "completed"
    assert try_claim(inside, agent) is None


@pytest.mark.one_store
def test_after_a_kill_the_next_one_runs_alone_and_in_its_order(
    served: Served, inside: Store
) -> None:
    agent = hired(inside)
    ids = [sent(served, agent, f"{n}", senderId=f"U{n}") for n in range(3)]
    take(inside, agent, limit=1)
    served.post(f"/api/queue/processing/{ids[0]}/kill")
    deadline = time.monotonic() + 90
    while (run := try_claim(inside, agent, limit=1)) is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert run.primary.message_id == ids[1]
    assert try_claim(inside, agent) is None


def test_what_is_over_is_not_killed(served: Served, inside: Store) -> None:
    agent = hired(inside)
    message = sent(served, agent)
    done(inside, take(inside, agent).token)
    path = f"/api/queue/processing/{message}/kill"
    assert served.refused("POST", path) == (409, "illegal_move")
    to_archive(inside, message)
    assert served.refused("POST", path) == (404, "unknown_message")


def test_the_dead_are_listed_as_the_reference_reads_them(served: Served, inside: Store) -> None:
    agent = hired(inside)
    message = died(served, inside, agent, text="do it")
    (row,) = served.get(f"/api/queue/dead?agent={agent}")
    assert row["data"] == {
        "channel": "api",
        "sender": "Ada",
        "senderId": "U1",
        "message": "do it",
        "messageId": message,
        "agent": agent,
    }
    assert (row["failedReason"], row["attemptsMade"], row["kind"]) == (
        "it cannot be",
        1,
        "permanent",
    )
    assert row["timestamp"] >= row["createdAt"]


def test_the_dead_are_found_by_agent_and_kind_and_page_by_number(
    served: Served, inside: Store
) -> None:
    agent = hired(inside)
    ids = [died(served, inside, agent) for _ in range(3)]
    path = f"/api/queue/dead?agent={agent}"
    newest = [row["data"]["messageId"] for row in served.get(f"{path}&limit=2")]
    assert newest == [ids[2], ids[1]]
    first = served.ask("GET", f"{path}&limit=2&since_id=0")
    assert [row["data"]["messageId"] for row in first.json()] == ids[:2]
    rest = served.get(f"{path}&since_id={first.headers['X-Next-Cursor']}")
    assert [row["data"]["messageId"] for row in rest] == ids[2:]
    assert served.get(f"{path}&kind=crash") == []
    assert len(served.get(f"{path}&kind=permanent")) == 3


@pytest.mark.parametrize("by", ["id", "number"])
def test_a_dead_message_is_tried_again_or_deleted(served: Served, inside: Store, by: str) -> None:
    agent = hired(inside)
    ids = [died(served, inside, agent) for _ in range(2)]
    rows = served.get(f"/api/queue/dead?agent={agent}&since_id=0")
    again, gone = (row["id"] if by == "number" else row["data"]["messageId"] for row in rows)
    assert served.post(f"/api/queue/dead/{again}/retry") == {"ok": True}
    seen = served.get(f"/api/messages/{ids[0]}")
    assert (seen["status"], seen["retry_count"]) == ("pending", 0)
    assert served.ok("DELETE", f"/api/queue/dead/{gone}") == {"ok": True}
    assert served.refused("GET", f"/api/messages/{ids[1]}") == (404, "unknown_message")


def test_what_is_not_dead_is_not_among_the_dead(served: Served, inside: Store) -> None:
    message = sent(served, hired(inside))
    assert served.refused("DELETE", f"/api/queue/dead/{message}") == (404, "unknown_message")
    assert served.refused("POST", f"/api/queue/dead/{message}/retry") == (404, "unknown_message")
    assert served.refused("POST", f"/api/queue/held/{message}/let-go") == (404, "unknown_message")
    assert status(served, message) == "pending"


def test_many_dead_are_tried_again_at_once(served: Served, inside: Store) -> None:
    agent, other = hired(inside), hired(inside)
    ids = [died(served, inside, agent) for _ in range(3)]
    spared = died(served, inside, other)
    body = {"agent": agent, "kind": "permanent", "limit": 2}
    assert served.post("/api/queue/dead/retry", body) == {"ok": True, "count": 2}
    assert [status(served, each) for each in ids] == ["pending", "pending", "dead"]
    assert served.post("/api/queue/dead/retry", {"agent": agent}) == {"ok": True, "count": 1}
    assert served.post("/api/queue/dead/retry", {"agent": agent}) == {"ok": True, "count": 0}
    assert status(served, spared) == "dead"


def test_the_dead_of_a_removed_agent_stay(served: Served, inside: Store) -> None:
    agent = hired(inside)
    message = died(served, inside, agent)
    do(inside, remove_agent, agent)
    body = {"agent": agent}
    assert served.refused("POST", "/api/queue/dead/retry", body) == (409, "lane_closed")
    assert status(served, message) == "dead"


def test_the_held_are_listed_with_the_reason_and_let_go(served: Served, inside: Store) -> None:
    agent = hired(inside)
    message = held(served, inside, agent)
    (row,) = served.get(f"/api/queue/held?agent={agent}")
    assert (row["message_id"], row["reason"], row["kind"]) == (
        message,
        "it cannot be",
        "needs_person",
    )
    assert served.post(f"/api/queue/held/{row['id']}/let-go") == {"ok": True}
    assert status(served, message) == "pending"


def test_a_key_for_one_agent_sees_and_moves_nothing_of_another(
    served: Served, inside: Store
) -> None:
    mine, other = hired(inside), hired(inside)
    key = served.key(Scope.READ, Scope.APPROVE, agents=(mine,))
    theirs = died(served, inside, other)
    running = sent(served, other)
    take(inside, other)
    out = (403, "out_of_reach")
    assert [row["agent"] for row in served.get("/api/queue/agents", token=key)] == [mine]
    assert served.get("/api/queue/processing", token=key) == []
    assert served.get(f"/api/queue/dead?agent={mine}", token=key) == []
    for path in ("status", "dead", "held", f"dead?agent={other}", f"held?agent={other}"):
        assert served.refused("GET", f"/api/queue/{path}", token=key) == out, path
    kill = f"/api/queue/processing/{running}/kill"
    assert served.refused("POST", kill, token=key) == out
    assert served.refused("POST", f"/api/queue/dead/{theirs}/retry", token=key) == out
    assert served.refused("DELETE", f"/api/queue/dead/{theirs}", token=key) == out
    assert served.refused("POST", "/api/queue/dead/retry", {}, token=key) == out
    assert (status(served, theirs), status(served, running)) == ("dead", "processing")


def test_a_message_that_is_not_there_is_404_whatever_it_is_called(
    served: Served, subtests: pytest.Subtests
) -> None:
    for number in ["0", "9" * 18, "9" * 30, "-1", "x", "%00", "%F0%9F", "a%2Fb"]:
        with subtests.test(number=number):
            for method, path in (
                ("POST", f"/api/queue/processing/{number}/kill"),
                ("POST", f"/api/queue/dead/{number}/retry"),
                ("DELETE", f"/api/queue/dead/{number}"),
                ("POST", f"/api/queue/held/{number}/let-go"),
            ):
                status_, _ = served.refused(method, path)
                assert status_ in (400, 404, 405), path


def test_a_list_that_cannot_be_is_refused(served: Served, subtests: pytest.Subtests) -> None:
    for query in ["limit=0", "limit=501", "limit=abc", "since_id=-1", "since_id=1e9", "agent=%00"]:
        with subtests.test(query=query):
            assert served.refused("GET", f"/api/queue/dead?{query}")[0] == 400
            assert served.refused("GET", f"/api/queue/held?{query}")[0] == 400
