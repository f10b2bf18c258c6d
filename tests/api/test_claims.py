"""Outside workers: claim, extend, complete, fail, release."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bullpen.core.access.keys import Scope
from bullpen.core.queue.lanes import Batching, LanePolicy, create_lane
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from tests.api.claiming import (
    EMPTY,
    NUMBERS,
    Document,
    claim,
    claimed_at,
    hire,
    ids,
    own_agent,
    send,
)
from tests.api.served import LIMIT, Served

CLAIMANT = """
import json, sys, time, urllib.request
url, token, agent = sys.argv[1:]
body = json.dumps({"agent": agent, "worker": "doomed", "lease": 2}).encode()
headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
asked = urllib.request.Request(f"{url}/api/queue/claim", body, headers)
print(urllib.request.urlopen(asked).read().decode(), flush=True)
time.sleep(600)
"""
"""A worker that claims and is never heard of again."""


@pytest.fixture
def agent(inside: Store) -> str:
    """An agent of this test alone, left to outside workers."""
    return own_agent(inside)


def answers(served: Served, message: str) -> list[str]:
    """What was answered to a message."""
    return [
        each["message"]
        for each in served.get("/api/responses?limit=500")
        if each["messageId"] == message
    ]


def test_a_claim_gives_the_message_with_all_that_a_worker_needs(served: Served, agent: str) -> None:
    sent = send(served, agent, "fix it", payload={"n": [1, "é"]}, schema="s1", priority=1)
    before = time.time() * 1000
    found = claim(served, agent, worker="w-1", lease=30)
    after = time.time() * 1000
    (message,) = found["messages"]
    assert found["token"].startswith(f"{agent}.")
    assert before + 29_000 < found["lease_expires_at"] < after + 31_000
    assert message.pop("created_at") > 0
    assert message == {
        "message_id": sent,
        "message": "fix it",
        "files": [],
        "sender": "Ada",
        "sender_id": "ada",
        "channel": "api",
        "conversation_id": sent,
        "parent_id": None,
        "from_agent": None,
        "team_id": None,
        "hop": 0,
        "priority": 1,
        "deadline": None,
        "payload": {"n": [1, "é"]},
        "schema": "s1",
        "retry_count": 0,
    }
    seen = served.get(f"/api/messages/{sent}")
    assert (seen["status"], seen["claimed_by"]) == ("processing", "w-1")


def test_where_nothing_waits_nothing_is_given(served: Served, agent: str) -> None:
    assert claim(served, agent) == EMPTY


def test_what_is_completed_is_answered_once(served: Served, agent: str) -> None:
    sent = send(served, agent, "add it up")
    token = claim(served, agent)["token"]
    body = {"token": token, "response": "it is 42", "metadata": {"mood": "good"}}
    usage = {"provider": "acme", "model": "m1", "input_tokens": 7, "output_tokens": 2, "cost": 0.5}
    assert served.post("/api/queue/complete", {**body, "usage": usage}) == {
        "ok": True,
        "status": "completed",
    }
    assert served.refused("POST", "/api/queue/complete", body) == (409, "stale_token")
    assert served.get(f"/api/messages/{sent}")["status"] == "completed"
    assert answers(served, sent) == ["it is 42"]
    (attempt,) = served.get(f"/api/attempts?message_id={sent}")
    assert {**usage, **attempt} == {**attempt, **usage}


def test_tags_in_an_answer_are_followed(served: Served, inside: Store, agent: str) -> None:
    friend = f"{agent}b"
    hire(inside, friend)
    sent = send(served, agent, "ask around")
    token = claim(served, agent)["token"]
    text = f"I ask. [@{friend}: what do you think?]"
    served.post("/api/queue/complete", {"token": token, "response": text})
    (message,) = claim(served, friend)["messages"]
    assert (message["from_agent"], message["parent_id"], message["hop"]) == (agent, sent, 1)
    assert message["conversation_id"] == sent
    assert "what do you think?" in message["message"]


def test_files_leave_only_from_where_they_may(
    served: Served, office: Settings, agent: str, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("mine")
    home = office.workspace / agent
    home.mkdir(parents=True)
    (home / "out.txt").write_text("yours")
    (home / "link").symlink_to(secret)
    uploaded = served.ok("POST", "/api/files", files={"file": ("a.txt", b"up")})["name"]
    sent = send(served, agent, "give me")
    token = claim(served, agent)["token"]
    files = ["out.txt", "link", str(secret), "/etc/hostname", "..", uploaded, "none"]
    text = f"here [send_file: {office.token_file}]"
    served.post("/api/queue/complete", {"token": token, "response": text, "files": files})
    (found,) = [
        each for each in served.get("/api/responses?limit=500") if each["messageId"] == sent
    ]
    assert found["files"] == [str(home / "out.txt"), str(office.files / uploaded)]
    for refused in (str(secret), "link", "/etc/hostname", str(office.token_file), "none"):
        assert f"{refused} was not sent" in found["message"]


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_answer_with_nothing_in_it_is_a_failure(served: Served, agent: str, text: str) -> None:
    sent = send(served, agent, "say something")
    token = claim(served, agent)["token"]
    done = served.post("/api/queue/complete", {"token": token, "response": text})
    assert done["status"] == "failed"
    seen = served.get(f"/api/messages/{sent}")
    assert (seen["status"], seen["retry_count"]) == ("pending", 1)
    assert seen["last_error"] == "the response was empty"


@pytest.mark.one_store
def test_what_fails_is_tried_again_after_what_was_asked_for(served: Served, agent: str) -> None:
    sent = send(served, agent, "try")
    token = claim(served, agent)["token"]
    served.post("/api/queue/fail", {"token": token, "error": "no\x00luck", "retry_after": 1.5})
    seen = served.get(f"/api/messages/{sent}")
    assert (seen["status"], seen["error_kind"]) == ("pending", "retryable")
    assert seen["available_at"] - seen["updated_at"] == 1500
    began = time.monotonic()
    again = claim(served, agent, wait=60)
    assert ids(again) == [sent]
    assert time.monotonic() - began < 50
    assert claimed_at(served, agent) >= seen["available_at"]
    assert again["messages"][0]["retry_count"] == 1


def test_the_kind_of_a_failure_decides(served: Served, agent: str) -> None:
    sent = send(served, agent, "try")
    token = claim(served, agent)["token"]
    served.post("/api/queue/fail", {"token": token, "error": "never", "kind": "permanent"})
    assert served.get(f"/api/messages/{sent}")["status"] == "dead"
    other = send(served, agent, "try")
    token = claim(served, agent)["token"]
    served.post("/api/queue/fail", {"token": token, "error": "log in", "kind": "auth"})
    assert served.get(f"/api/messages/{other}")["status"] == "pending"
    assert served.get(f"/api/lanes/{agent}")["state"] == "paused"
    assert claim(served, agent) == EMPTY


def test_what_is_released_waits_again_and_counts_nothing(served: Served, agent: str) -> None:
    sent = send(served, agent, "later")
    token = claim(served, agent)["token"]
    served.post("/api/queue/release", {"token": token})
    again = claim(served, agent)
    assert ids(again) == [sent]
    assert again["messages"][0]["retry_count"] == 0


@pytest.mark.one_store
def test_an_extended_claim_lasts_longer(served: Served, agent: str) -> None:
    send(served, agent, "long work")
    found = claim(served, agent, lease=1)
    until = served.post("/api/queue/extend", {"token": found["token"], "lease": 100})
    assert until["lease_expires_at"] > found["lease_expires_at"] + 90_000
    assert claim(served, agent, wait=2) == EMPTY
    served.post("/api/queue/complete", {"token": found["token"], "response": "done"})


@pytest.mark.one_store
def test_a_stale_token_changes_nothing(served: Served, agent: str) -> None:
    sent = send(served, agent, "mine")
    stale = claim(served, agent, worker="slow", lease=1)["token"]
    found = claim(served, agent, worker="quick", wait=60)
    assert ids(found) == [sent]
    for verb, body in (
        ("extend", {}),
        ("complete", {"response": "late [@coder: hello]"}),
        ("complete", {"response": ""}),
        ("fail", {"error": "late", "kind": "permanent"}),
        ("release", {}),
    ):
        refused = served.refused("POST", f"/api/queue/{verb}", {"token": stale, **body})
        assert refused == (409, "stale_token"), verb
    assert answers(served, sent) == []
    served.post("/api/queue/complete", {"token": found["token"], "response": "mine"})
    assert answers(served, sent) == ["mine"]


@pytest.mark.one_store
def test_a_killed_workers_message_comes_to_the_next_one(served: Served, agent: str) -> None:
    sent = send(served, agent, "survive")
    command = [sys.executable, "-c", CLAIMANT, served.url, served.token, agent]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as doomed:
        assert doomed.stdout is not None
        lost = json.loads(doomed.stdout.readline())
        assert ids(lost) == [sent]
        doomed.send_signal(signal.SIGKILL)
        assert doomed.wait(LIMIT) == -signal.SIGKILL
    found = claim(served, agent, worker="next", wait=60)
    assert ids(found) == [sent]
    assert claimed_at(served, agent) >= lost["lease_expires_at"]
    served.post("/api/queue/complete", {"token": found["token"], "response": "here I am"})
    body = {"token": lost["token"], "response": "so am I"}
    assert served.refused("POST", "/api/queue/complete", body) == (409, "stale_token")
    assert answers(served, sent) == ["here I am"]
    assert served.get(f"/api/messages/{sent}")["crash_count"] == 1


def test_of_two_who_race_one_gets_it(served: Served, agent: str) -> None:
    for _ in range(10):
        sent = send(served, agent, "who?")
        start = threading.Barrier(2)

        def race(start: threading.Barrier = start) -> Document:
            start.wait(LIMIT)
            return claim(served, agent)

        with ThreadPoolExecutor(2) as pool:
            found = [each.result() for each in [pool.submit(race), pool.submit(race)]]
        won = [each for each in found if each["token"] is not None]
        assert [ids(each) for each in won] == [[sent]]
        served.post("/api/queue/complete", {"token": won[0]["token"], "response": "I"})


def test_many_workers_answer_each_of_many_messages_once(served: Served, inside: Store) -> None:
    names = [f"many{next(NUMBERS)}" for _ in range(4)]
    for name in names:
        with inside.write() as tx:
            create_lane(tx, name, LanePolicy(batching=Batching.ONE))
        hire(inside, name)
    sent = [send(served, names[n % 4], str(n)) for n in range(100)]
    done: Counter[str] = Counter()
    lock = threading.Lock()
    deadline = time.monotonic() + 120

    def work(number: int) -> None:
        turn = number
        while len(done) < len(sent) and time.monotonic() < deadline:
            turn += 1
            found = claim(served, names[turn % 4], worker=f"t{number}")
            if found["token"] is None:
                time.sleep(0.01)
                continue
            (message,) = ids(found)
            body = {"token": found["token"], "response": f"done {message}"}
            served.post("/api/queue/complete", body)
            with lock:
                done[message] += 1

    with ThreadPoolExecutor(8) as pool:
        for each in [pool.submit(work, number) for number in range(8)]:
            each.result()
    assert done == Counter(sent)
    for message in sent[::10]:
        assert answers(served, message) == [f"done {message}"]


@pytest.fixture(scope="module")
def limited(served: Served) -> str:
    """A key that may work for one agent alone."""
    return served.key(Scope.CLAIM, agents=("worker",))


def test_a_key_claims_for_its_own_agent_alone(served: Served, limited: str) -> None:
    assert claim(served, "worker", token=limited) == EMPTY
    body = {"agent": "other"}
    assert served.refused("POST", "/api/queue/claim", body, token=limited) == (403, "out_of_reach")
    sent = send(served, "other", "not yours")
    token = claim(served, "other")["token"]
    for verb, more in (
        ("extend", {}),
        ("complete", {"response": "x"}),
        ("fail", {"error": "x"}),
        ("release", {}),
    ):
        body = {"token": token, **more}
        refused = served.refused("POST", f"/api/queue/{verb}", body, token=limited)
        assert refused == (403, "out_of_reach"), verb
    assert served.get(f"/api/messages/{sent}")["status"] == "processing"
    served.post("/api/queue/release", {"token": token}, token=served.key(Scope.CLAIM))


@pytest.mark.parametrize("scope", [Scope.READ, Scope.PUBLISH, Scope.APPROVE])
def test_a_key_of_another_scope_does_not_work(served: Served, scope: Scope) -> None:
    body = {"agent": "worker"}
    refused = served.refused("POST", "/api/queue/claim", body, token=served.key(scope))
    assert refused == (403, "scope_too_small")


def test_what_is_no_claim_is_refused(served: Served, subtests: pytest.Subtests) -> None:
    for body in [
        {},
        {"agent": ""},
        {"agent": "worker", "limit": 0},
        {"agent": "worker", "limit": 1 << 70},
        {"agent": "worker", "lease": 0},
        {"agent": "worker", "lease": 86401},
        {"agent": "worker", "wait": 61},
        {"agent": "worker", "wait": -1},
        {"agent": "worker", "wait": float("nan")},
        {"agent": "worker", "worker": "a\x00b"},
        {"agent": "worker", "worker": "\ud800"},
        {"agent": "a\x00b"},
        {"agent": "worker", "more": 1},
    ]:
        with subtests.test(body=body):
            send(served, "worker", "stay")
            assert served.ask("POST", "/api/queue/claim", body).status_code == 400
            token = claim(served, "worker")["token"]
            served.post("/api/queue/complete", {"token": token, "response": "I stayed"})


def test_there_is_no_claim_for_an_agent_that_does_not_exist(served: Served) -> None:
    refused = served.refused("POST", "/api/queue/claim", {"agent": "nobody", "wait": 5})
    assert refused == (404, "unknown_agent")


def test_what_is_no_token_is_stale(served: Served, subtests: pytest.Subtests) -> None:
    for token in ["", "x", "worker.0000", "no such.1", "a\x00.b1", "🐂.1"]:
        with subtests.test(token=token):
            for verb, more in (
                ("extend", {}),
                ("complete", {"response": "x"}),
                ("fail", {"error": "x"}),
            ):
                refused = served.refused("POST", f"/api/queue/{verb}", {"token": token, **more})
                assert refused == (409, "stale_token")


@pytest.mark.parametrize(
    "more",
    [
        {"usage": {"cost": float("inf")}},
        {"usage": {"cost": -1}},
        {"usage": {"input_tokens": 1 << 40}},
        {"usage": {"model": "a\x00b"}},
        {"files": ["x"] * 65},
        {"metadata": [1]},
    ],
    ids=str,
)
def test_what_is_no_answer_is_refused_and_the_claim_goes_on(
    served: Served, agent: str, more: dict[str, object]
) -> None:
    send(served, agent, "careful")
    token = claim(served, agent)["token"]
    body = {"token": token, "response": "x", **more}
    assert served.ask("POST", "/api/queue/complete", body).status_code == 400
    served.post("/api/queue/complete", {"token": token, "response": "a\x00b"})
