"""What happened, as a list and as a stream that ends."""

from __future__ import annotations

from typing import Any

import pytest

from bullpen.core.access.keys import Scope
from bullpen.core.events.append import append_event
from bullpen.core.events.system import ProcessorStart
from bullpen.core.store.base import Store
from tests.api.served import Served


def newest(served: Served) -> int:
    """The last event's id."""
    return int(served.get("/api/events?limit=1")[0]["id"])


def finite(served: Served, query: str, token: str | None = None, **headers: str) -> list[Any]:
    """The frames of a stream that ends."""
    response = served.ask(
        "GET", f"/api/events/stream?follow=false&{query}", token=token, headers=headers
    )
    assert response.status_code == 200, response.text
    assert response.headers["Content-Type"].startswith("text/event-stream")
    blocks = response.text.split("\n\n")
    assert blocks.pop() == ""
    return [dict(line.split(": ", 1) for line in block.splitlines()) for block in blocks]


def test_a_list_has_what_happened_with_all_that_is_known_of_it(served: Served) -> None:
    sent = served.post("/api/message", {"message": "@coder hello", "sender": "Ada"})
    rows = served.get(f"/api/events?message_id={sent['messageId']}&since_id=0")
    assert [row["type"] for row in rows] == ["message_enqueued", "agent_routed"]
    first = rows[0]
    assert (first["agent"], first["conversation_id"]) == ("coder", sent["conversationId"])
    assert (first["agentName"], first["sender"], first["message"]) == (
        "Code Wizard",
        "Ada",
        "hello",
    )
    at = first["timestamp"]
    assert first["data"] == {"channel": "api", "sender": "Ada", "hop": 0, "available_at": at}
    newer = served.get(f"/api/events?message_id={sent['messageId']}&limit=1")
    assert [row["type"] for row in newer] == ["agent_routed"]


def test_a_list_pages_by_its_numbers_and_filters(served: Served) -> None:
    since = newest(served)
    sent = [served.post("/api/message", {"message": f"@worker {n}"})["messageId"] for n in range(5)]
    served.post("/api/message", {"message": "@coder other"})
    found, at = [], since
    while True:
        response = served.ask(
            "GET", f"/api/events?limit=2&since_id={at}&types=message:incoming&agent=worker"
        )
        found += [row["message_id"] for row in response.json()]
        if "X-Next-Cursor" not in response.headers:
            break
        at = int(response.headers["X-Next-Cursor"])
    assert found == sent


def test_a_key_for_some_agents_sees_their_events_and_no_others(served: Served) -> None:
    since = newest(served)
    mine = served.post("/api/message", {"message": "@coder mine"})["messageId"]
    served.post("/api/message", {"message": "@other theirs"})
    key = served.key(Scope.READ, agents=("coder",))
    rows = served.get(f"/api/events?since_id={since}", token=key)
    assert {row["message_id"] for row in rows} == {mine}
    frames = finite(served, f"since_id={since}", key)
    assert [frame["event"] for frame in frames] == [
        *("connected", "message:incoming", "message_enqueued", "agent_routed"),
    ]
    for path in ("/api/events?agent=other", "/api/events/stream?agent=other"):
        assert served.refused("GET", path, token=key) == (403, "out_of_reach")


def test_a_key_that_may_not_read_follows_nothing(served: Served) -> None:
    key = served.key(Scope.PUBLISH)
    for path in ("/api/events", "/api/events/stream"):
        assert served.refused("GET", path, token=key) == (403, "scope_too_small")
        assert served.refused("GET", path, token="")[0] == 401


def test_a_stream_that_does_not_follow_sends_what_there_is_and_ends(
    served: Served, inside: Store
) -> None:
    since = newest(served)
    with inside.write() as tx:
        for number in range(250):
            append_event(tx, ProcessorStart(worker=f"w{number}"))
    frames = finite(served, f"since_id={since}")
    assert (frames[0]["event"], frames[0]["id"]) == ("connected", str(since))
    ids = [int(frame["id"]) for frame in frames[1:]]
    assert len(ids) == 250
    assert ids == sorted(ids)
    last = ids[-1]
    assert finite(served, "since_id=0", **{"Last-Event-ID": str(last)})[1:] == []
    assert [frame["event"] for frame in finite(served, "")] == ["connected"]


def test_an_id_that_was_never_given_is_now(served: Served) -> None:
    for far in (newest(served) + 1000, (1 << 53) - 1):
        (frame,) = finite(served, f"since_id={far}")
        assert int(frame["id"]) == newest(served)
    (frame,) = finite(served, "", **{"Last-Event-ID": "9" * 19})
    assert int(frame["id"]) == newest(served)


def test_what_makes_no_sense_is_refused(served: Served, subtests: pytest.Subtests) -> None:
    for query in [
        "since_id=-1",
        "since_id=x",
        "follow=perhaps",
        "types=" + "x" * 2001,
        "agent=" + "x" * 201,
    ]:
        with subtests.test(query=query):
            assert served.refused("GET", f"/api/events/stream?{query}") == (400, "bad_request")


def test_an_id_that_is_none_is_refused(served: Served) -> None:
    headers = {"Last-Event-ID": "nonsense"}
    assert served.refused("GET", "/api/events/stream", headers=headers) == (400, "bad_request")


@pytest.mark.parametrize(
    "query", ["conversation_id=%00", "types=%00,a", "agent=%ED%A0%80", "team=%00"]
)
def test_whatever_is_looked_for_breaks_nothing(served: Served, query: str) -> None:
    for path in ("/api/events?", "/api/events/stream?follow=false&since_id=0&"):
        response = served.ask("GET", path + query)
        assert response.status_code in (200, 400), response.text
        assert "failed" not in response.text


def test_head_is_answered_without_a_stream(served: Served) -> None:
    response = served.ask("HEAD", "/api/events/stream")
    assert response.status_code == 200
    assert response.headers["Content-Type"].startswith("text/event-stream")
