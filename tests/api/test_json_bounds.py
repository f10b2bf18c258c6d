"""JSON that no reader could be given again is refused; rows that have it cost only themselves."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import bindparam, update

from bullpen.core.models import MESSAGES, RESPONSES
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement
from bullpen.core.strict_json import MAX_NESTING
from tests.api.claiming import claim, ids, own_agent, send
from tests.api.served import Served

JSON = {"Content-Type": "application/json"}
DEEP = "[" * 300 + "]" * 300

SET_PAYLOAD: Statement[None] = Statement(
    lambda: (
        update(MESSAGES)
        .where(MESSAGES.c.message_id == bindparam("id"))
        .values(payload=bindparam("payload"))
    )
)
SET_METADATA: Statement[None] = Statement(
    lambda: (
        update(RESPONSES)
        .where(RESPONSES.c.message_id == bindparam("id"))
        .values(metadata=bindparam("metadata"))
    )
)

REFUSED = {
    "half a surrogate pair": r'{"a":"\udfff"}',
    "half of one in a name": r'{"\ud800":1}',
    "one deep inside": r'{"a":[[{"b":["\ud83d"]}]]}',
    "a NUL": r'{"a":"x\u0000"}',
    "a NUL in a name": r'{"\u0000":1}',
    "too deep": f'{{"a":{DEEP}}}',
    "one level too deep": f'{{"a":{"[" * MAX_NESTING}{"]" * MAX_NESTING}}}',
    "an integer of more than 64 bits": f'{{"a":{1 << 63}}}',
    "a huge integer": '{"a":%s}' % ("9" * 5000),
    "no number": '{"a":NaN}',
    "infinity": '{"a":-Infinity}',
    "a float over the range": '{"a":1e999}',
}
UNSHOWABLE = {
    "half a surrogate pair": r'{"a":"\udfff"}',
    "a NUL": r'{"a":"\u0000"}',
    "pydantic's last level": f'{{"a":{"[" * 253}{"]" * 253}}}',
    "beyond every reader": f'{{"a":{"[" * 5000}{"]" * 5000}}}',
    "no number": '{"a":NaN}',
    "a huge integer": '{"a":%s}' % ("9" * 5000),
}


def _post(served: Served, path: str, body: str) -> tuple[int, str, str]:
    response = served.ask("POST", path, data=body.encode(), headers=JSON)
    found = response.json()
    return response.status_code, str(found.get("code")), str(found.get("error"))


def test_json_that_cannot_be_given_out_again_is_refused_wherever_it_stands(
    served: Served, inside: Store, subtests: pytest.Subtests
) -> None:
    agent = own_agent(inside)
    send(served, agent, "wait")
    token = claim(served, agent)["token"]
    places = {
        "/api/message": f'{{"message":"@{agent} x","payload":%s}}',
        "/api/responses": '{"channel":"web","sender":"Ada","message":"x","metadata":%s}',
        "/api/queue/complete": f'{{"token":"{token}","response":"x","metadata":%s}}',
    }
    for path, body in places.items():
        for name, value in REFUSED.items():
            with subtests.test(path=path, value=name):
                status, code, _ = _post(served, path, body % value)
                assert (status, code) in ((400, "bad_request"), (400, "bad_text"))
    served.post("/api/queue/complete", {"token": token, "response": "still mine"})


def test_json_at_the_bounds_is_given_out_as_it_came(served: Served, inside: Store) -> None:
    agent = own_agent(inside)
    levels = MAX_NESTING - 2  # the body and the payload are two
    payload = {
        "deep": json.loads("[" * levels + "]" * levels),
        "big": (1 << 63) - 1,
        "🐂": "🐂\x7f",
    }
    id_ = send(served, agent, "x", payload=payload)
    assert served.get(f"/api/messages/{id_}")["payload"] == payload
    assert served.get(f"/api/conversations/{id_}")["messages"][0]["payload"] == payload
    assert claim(served, agent)["messages"][0]["payload"] == payload


def test_a_body_nested_beyond_every_parser_is_400(
    served: Served, subtests: pytest.Subtests
) -> None:
    paths = ("/api/message", "/api/queue/claim", "/api/queue/fail", "/api/agents", "/api/keys")
    for path in paths:
        for depth in (200, 1000, 100_000):
            with subtests.test(path=path, depth=depth):
                status, code, said = _post(served, path, "[" * depth + "]" * depth)
                assert (status, code) == (400, "bad_request")
                assert "nested" in said


def test_what_is_wrong_with_the_json_is_said_and_where(
    served: Served, subtests: pytest.Subtests
) -> None:
    for body, said in (
        ('{"message":"x",}', "line 1 column 16"),
        ('{"message":"x"', "line 1 column 15"),
        ('{"message":\n"x",,}', "line 2 column 5"),
    ):
        with subtests.test(body=body):
            status, code, error = _post(served, "/api/message", body)
            assert (status, code) == (400, "bad_request")
            assert said in error
    response = served.ask("POST", "/api/message", data=b'{"message":"\xed\xa0\x80"}', headers=JSON)
    assert response.status_code == 400
    assert "UTF-8" in response.json()["error"]


def test_a_row_that_cannot_be_shown_costs_only_its_own_field(
    served: Served, inside: Store, subtests: pytest.Subtests
) -> None:
    agent = own_agent(inside)
    honest = served.post(
        "/api/responses", {"channel": "rows", "sender": "Ada", "message": "honest", "agent": agent}
    )["messageId"]
    for name, value in UNSHOWABLE.items():
        with subtests.test(value=name):
            bad = send(served, agent, "bad", payload={"a": 1})
            good = send(served, agent, "good", payload={"a": 2})
            said = served.post(
                "/api/responses", {"channel": "rows", "sender": "Ada", "message": name}
            )["messageId"]
            with inside.write() as tx:
                tx.write(SET_PAYLOAD, {"id": bad, "payload": value})
                tx.write(SET_METADATA, {"id": said, "metadata": value})
            assert "unreadable" in served.get(f"/api/messages/{bad}")["payload"]
            served.get(f"/api/conversations/{bad}")
            listed = served.get(f"/api/messages?agent={agent}")
            assert {each["message_id"] for each in listed} >= {bad, good}
            for path in ("/api/responses?channel=rows", "/api/responses/pending?channel=rows"):
                found = {each["messageId"]: each["metadata"] for each in served.get(path)}
                assert "unreadable" in found[said]
                assert honest in found
            taken = claim(served, agent)
            assert ids(taken) == [bad, good]
            assert "unreadable" in taken["messages"][0]["payload"]
            assert taken["messages"][1]["payload"] == {"a": 2}
            served.post("/api/queue/complete", {"token": taken["token"], "response": "done"})
    lease = served.post("/api/responses/lease", {"channel": "rows", "limit": 100})
    assert len(lease["responses"]) == len(UNSHOWABLE) + 1


def test_a_claim_whose_answer_cannot_be_made_is_not_taken(
    office_with_a_damaged_row: tuple[Served, str],
) -> None:
    served, agent = office_with_a_damaged_row
    for _ in range(3):
        assert (
            served.ask("POST", "/api/queue/claim", {"agent": agent, "lease": 1}).status_code == 500
        )
    lane = served.get(f"/api/lanes/{agent}")
    assert lane["claimed_at"] is None


@pytest.fixture
def office_with_a_damaged_row(served: Served, inside: Store) -> tuple[Served, str]:
    """An agent with a message whose list of files is no list, as no writer of ours leaves it."""
    agent = own_agent(inside)
    id_ = send(served, agent, "x")
    damage: Statement[None] = Statement(
        lambda: (
            update(MESSAGES)
            .where(MESSAGES.c.message_id == bindparam("id"))
            .values(files="{no list")
        )
    )
    with inside.write() as tx:
        tx.write(damage, {"id": id_})
    return served, agent


def test_a_worker_is_named_on_one_line(
    served: Served, inside: Store, subtests: pytest.Subtests
) -> None:
    agent = own_agent(inside)
    send(served, agent, "x")
    for name in ("a\nb", "a\x1b]52;c;x\x07", "a\x9bb", "a\u202eb", "a\u2028b"):
        with subtests.test(name=name):
            for path, body in (
                ("/api/queue/claim", {"agent": agent, "worker": name}),
                ("/api/responses/lease", {"channel": "rows", "worker": name}),
            ):
                assert served.refused("POST", path, body) == (400, "bad_text")
