"""History over the API: what was said, to whom, and who may read it."""

from __future__ import annotations

import pytest

from bullpen.core.access.keys import Scope
from bullpen.core.company import add_agent, remove_agent
from bullpen.core.roster.agents import Agent
from bullpen.core.store.base import Store
from tests.answers.talk import answer
from tests.api.served import Served

ROW = {"id", "agent_id", "role", "channel", "sender", "message_id", "content", "created_at"}


def talk(served: Served, inside: Store, agent: str, text: str, **more: str) -> str:
    """Send an agent a message and let it answer `yes`; gives the message's id."""
    body = {"message": text, "agent": agent, **more}
    message_id = str(served.post("/api/message", body)["messageId"])
    answer(inside, agent, "yes")
    return message_id


def contents(found: list[dict[str, str]], role: str = "user") -> list[str]:
    """What people said."""
    return [each["content"] for each in found if each["role"] == role]


def test_what_is_said_to_an_agent_and_by_it_is_in_its_history(
    served: Served, inside: Store
) -> None:
    message_id = talk(served, inside, "coder", "look here", sender="Ada", channel="slack")
    theirs, row = found = served.get("/api/agents/coder/messages?limit=2")
    assert set(row) == ROW
    assert (row["agent_id"], row["role"], row["channel"]) == ("coder", "user", "slack")
    assert (row["sender"], row["message_id"]) == ("Ada", message_id)
    assert row["content"] == "look here"
    assert (theirs["role"], theirs["content"]) == ("assistant", "yes")
    assert served.get("/api/agent-messages?limit=2") == found


def test_a_history_is_read_from_its_end_or_from_a_number_on(served: Served, inside: Store) -> None:
    with inside.write() as tx:
        add_agent(tx, Agent(id="paged"))
    for number in range(3):
        talk(served, inside, "paged", str(number))
        talk(served, inside, "coder", "in between")
    path = "/api/agents/paged/messages"
    newest = served.get(path)
    assert contents(newest) == ["2", "1", "0"]
    assert len(newest) == 6
    assert served.get(f"{path}?limit=2") == newest[:2]
    assert served.get(f"{path}?since_id={newest[3]['id']}") == newest[2::-1]
    assert served.get(f"{path}?since_id={newest[0]['id']}") == []
    found: list[dict[str, str]] = []
    since = 0
    for _ in range(10):
        everything = f"/api/agent-messages?agent=paged&limit=2&since_id={since}"
        response = served.ask("GET", everything)
        found += response.json()
        if "X-Next-Cursor" not in response.headers:
            break
        since = int(response.headers["X-Next-Cursor"])
    assert found == newest[::-1]


def test_since_id_zero_is_the_newest_as_the_references_clients_poll(
    served: Served, inside: Store
) -> None:
    with inside.write() as tx:
        add_agent(tx, Agent(id="polled"))
    for number in range(3):
        talk(served, inside, "polled", str(number))
    path = "/api/agents/polled/messages"
    newest = served.get(f"{path}?limit=2&since_id=0")
    assert [(each["role"], each["content"]) for each in newest] == [
        ("assistant", "yes"),
        ("user", "2"),
    ]
    assert newest == served.get(f"{path}?limit=2")


def test_a_running_message_is_in_the_history_before_its_answer(
    served: Served, inside: Store
) -> None:
    with inside.write() as tx:
        add_agent(tx, Agent(id="slow"))
    sent = served.post("/api/message", {"message": "@slow hello", "sender": "Ada"})
    (entry,) = served.get("/api/agents/slow/messages?since_id=0")
    assert (entry["role"], entry["message_id"]) == ("user", sent["messageId"])
    assert entry["created_at"] == served.get(f"/api/messages/{sent['messageId']}")["created_at"]


def test_the_whole_history_is_read_in_the_same_way(served: Served, inside: Store) -> None:
    talk(served, inside, "coder", "zero")
    first = served.get("/api/agent-messages?limit=1")[0]["id"]
    talk(served, inside, "coder", "one")
    talk(served, inside, "worker", "two")
    found = served.get(f"/api/agent-messages?since_id={first}")
    assert [(each["agent_id"], each["content"]) for each in found] == [
        *(("coder", "one"), ("coder", "yes")),
        *(("worker", "two"), ("worker", "yes")),
    ]
    assert served.get("/api/agent-messages?limit=4") == found[::-1]


def test_a_key_for_some_agents_reads_of_these_alone(served: Served, inside: Store) -> None:
    for agent in ("coder", "worker", "other"):
        talk(served, inside, agent, f"for the {agent}")
    limited = {"token": served.key(Scope.READ, agents=("coder", "other"))}
    for query in ("", "&since_id=0"):
        found = served.get(f"/api/agent-messages?limit=500{query}", **limited)
        assert {each["agent_id"] for each in found} == {"coder", "other"}
    assert served.get("/api/agents/coder/messages", **limited)
    assert served.get("/api/history/search?text=for&agent=coder", **limited)
    for path in (
        "/api/agents/worker/messages",
        "/api/agents/worker/messages?since_id=0",
        "/api/history/search?text=for",
        "/api/history/search?text=for&agent=worker",
        "/api/people",
    ):
        assert served.refused("GET", path, **limited) == (403, "out_of_reach"), path


def test_what_was_said_is_found_whatever_its_case(served: Served, inside: Store) -> None:
    talk(served, inside, "coder", "The Größe is 100%")
    talk(served, inside, "worker", "the größe is 200%")
    found = served.get("/api/history/search", params={"text": "GRÖßE"})
    assert contents(found)[:2] == ["the größe is 200%", "The Größe is 100%"]
    assert all(set(each) == ROW for each in found)
    of_coder = served.get("/api/history/search", params={"text": "größe", "agent": "coder"})
    assert contents(of_coder) == ["The Größe is 100%"]
    assert len(served.get("/api/history/search?text=e&limit=1")) == 1
    assert served.get("/api/history/search?text=nobody-ever-said-this") == []


def test_those_who_wrote_are_listed(served: Served) -> None:
    body = {"message": "@assistant hi", "sender": "Grace", "channel": "telegram", "senderId": "T7"}
    served.post("/api/message", body)
    found = served.get("/api/people")
    assert {"channel": "telegram", "sender": "Grace", "sender_id": "T7"} in found


def test_the_history_of_an_agent_outlives_it(served: Served, inside: Store) -> None:
    with inside.write() as tx:
        add_agent(tx, Agent(id="leaving"))
    talk(served, inside, "leaving", "goodbye")
    with inside.write() as tx:
        remove_agent(tx, "leaving")
    assert contents(served.get("/api/agents/leaving/messages")) == ["goodbye"]
    assert served.get("/api/agents/never/messages") == []


def test_a_question_that_is_none_is_refused(served: Served, subtests: pytest.Subtests) -> None:
    for path in [
        "/api/agent-messages?limit=0",
        "/api/agent-messages?limit=-1",
        "/api/agent-messages?limit=abc",
        f"/api/agent-messages?since_id={2**63}",
        "/api/agents/%00/messages",
        "/api/history/search",
        "/api/history/search?text=",
        "/api/history/search?text=%00",
        "/api/history/search?text=x&agent=%00",
        f"/api/history/search?text={'x' * 201}",
        "/api/history/search?text=x&limit=501",
    ]:
        with subtests.test(path=path):
            assert served.ask("GET", path).status_code == 400


def test_who_may_only_speak_reads_no_history(served: Served) -> None:
    speaker = {"token": served.key(Scope.PUBLISH)}
    for path in ("/api/agent-messages", "/api/agents/coder/messages", "/api/people"):
        assert served.refused("GET", path, **speaker) == (403, "scope_too_small")
