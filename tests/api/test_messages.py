"""Messages over the API: in, found, and decided about."""

from __future__ import annotations

import pytest

from bullpen.core.access.keys import Scope
from tests.api.served import Served


def test_a_message_is_stored_for_whom_it_addresses(served: Served) -> None:
    sent = served.post("/api/message", {"message": "@coder fix it", "sender": "Ada"})
    assert sent["ok"] is True
    assert sent["messageId"].startswith("api_")
    found = served.get(f"/api/messages/{sent['messageId']}")
    assert (found["agent"], found["message"], found["sender"]) == ("coder", "fix it", "Ada")
    assert found["status"] == "pending"


def test_a_message_to_several_is_several(served: Served) -> None:
    sent = served.post("/api/message", {"message": "[@coder: one] [@worker: two]"})
    ids = [each["messageId"] for each in sent["messages"]]
    assert len(set(ids)) == 2
    found = served.get(f"/api/messages?conversation_id={sent['conversationId']}")
    assert {(each["agent"], each["message"]) for each in found} == {
        ("coder", "one"),
        ("worker", "two"),
    }


def test_who_does_not_exist_is_answered_with_who_does(served: Served) -> None:
    response = served.ask("POST", "/api/message", {"message": "@nobody hello"})
    assert response.status_code == 404
    assert "coder" in response.json()["hint"]


def test_who_addresses_nobody_on_a_channel_is_answered_there_once(served: Served) -> None:
    said = {"message": "@nobody hello", "messageId": "tg_mine", "sender": "Ada", "senderId": "7"}
    for _ in range(2):
        response = served.ask("POST", "/api/message", {**said, "channel": "telegram"})
        assert response.status_code == 404
    (told,) = served.get("/api/responses/pending?channel=telegram")
    assert (told["messageId"], told["senderId"]) == ("tg_mine", "7")
    assert "'nobody'" in told["message"]
    assert "@coder" in told["message"]
    # Its caller reads the error.
    served.ask("POST", "/api/message", {**said, "channel": "web", "messageId": "web_mine"})
    assert served.get("/api/responses/pending?channel=web") == []


def test_a_second_message_with_an_id_is_a_conflict_that_tells_the_state_of_the_first(
    served: Served,
) -> None:
    body = {"message": "once", "messageId": "mine_1"}
    served.post("/api/message", body)
    response = served.ask("POST", "/api/message", body)
    assert response.status_code == 409
    assert (response.json()["messageId"], response.json()["status"]) == ("mine_1", "pending")


def test_a_repeat_under_one_idempotency_key_is_one_message(served: Served) -> None:
    again = {"headers": {"Idempotency-Key": "k1"}}
    first = served.post("/api/message", {"message": "once"}, **again)
    second = served.post("/api/message", {"message": "once"}, **again)
    assert first["messageId"] == second["messageId"]
    assert (first["fresh"], second["fresh"]) == (True, False)
    other = served.post("/api/message", {"message": "once"}, token=served.key(Scope.ADMIN), **again)
    assert other["messageId"] != first["messageId"]


def test_priority_delay_deadline_and_payload_are_kept(served: Served) -> None:
    body = {"message": "later", "priority": 0, "delay": 60_000, "payload": {"n": [1, "é"]}}
    sent = served.post("/api/message", {**body, "schema": "s1", "deadline": 4_000_000_000_000})
    found = served.get(f"/api/messages/{sent['messageId']}")
    assert found["priority"] == 0
    assert found["available_at"] - found["created_at"] == 60_000
    assert found["deadline"] == 4_000_000_000_000
    assert (found["payload"], found["schema"]) == ({"n": [1, "é"]}, "s1")


def test_what_is_no_message_is_refused_with_the_reason(
    served: Served, subtests: pytest.Subtests
) -> None:
    for body in [
        {},
        {"message": 5},
        {"message": "x", "priority": 9},
        {"message": "x", "delay": -1},
        {"message": "x", "deadline": 5},
        {"message": "a\x00b"},
        {"message": "\ud800"},
        {"message": "x", "unknown": 1},
        {"message": "x", "channel": "Not A Channel"},
        [],
        "text",
        None,
    ]:
        with subtests.test(body=body):
            response = served.ask("POST", "/api/message", body)
            assert response.status_code == 400
            assert response.json()["error"]


def test_json_that_is_none_is_400(served: Served) -> None:
    headers = {"Content-Type": "application/json"}
    response = served.ask("POST", "/api/message", headers=headers, data=b"{nonsense")
    assert (response.status_code, response.json()["code"]) == (400, "bad_request")


def test_a_list_pages_by_its_numbers(served: Served) -> None:
    ids = [
        served.post("/api/message", {"message": f"{n}", "channel": "paging"})["messageId"]
        for n in range(5)
    ]
    newest = served.ask("GET", "/api/messages?channel=paging&limit=2")
    assert [each["message_id"] for each in newest.json()] == [ids[4], ids[3]]
    # To follow from the newest page on; all that there is needs no cursor.
    assert newest.headers["X-Next-Cursor"] == str(newest.json()[0]["id"])
    everything = served.ask("GET", "/api/messages?channel=paging&limit=6")
    assert "X-Next-Cursor" not in everything.headers
    # After a number, a page that is not full has one too: more may come.
    last = served.ask(
        "GET", f"/api/messages?channel=paging&limit=6&since_id={everything.json()[-1]['id']}"
    )
    assert last.headers["X-Next-Cursor"] == newest.headers["X-Next-Cursor"]
    found, since = [], 0
    while True:
        path = f"/api/messages?channel=paging&limit=2&since_id={since}"
        response = served.ask("GET", path)
        found += [each["message_id"] for each in response.json()]
        if "X-Next-Cursor" not in response.headers:
            break
        since = int(response.headers["X-Next-Cursor"])
    assert found == ids


def test_a_person_cancels_retries_holds_lets_go_and_drops(served: Served) -> None:
    sent = served.post("/api/message", {"message": "@coder decide"})
    path = f"/api/messages/{sent['messageId']}"
    served.post(f"{path}/hold", {"reason": "wait"})
    assert served.get(path)["status"] == "held"
    served.post(f"{path}/let-go")
    assert served.get(path)["status"] == "pending"
    served.post(f"{path}/cancel", {"reason": "no more"})
    assert served.get(path)["last_error"] == "no more"
    assert served.refused("POST", f"{path}/cancel", {}) == (409, "illegal_move")
    served.post(f"{path}/retry")
    served.post(f"{path}/cancel", {})
    served.ok("DELETE", path)
    assert served.refused("GET", path) == (404, "unknown_message")


def test_a_repeat_for_several_gives_the_whole_first_answer(served: Served) -> None:
    again = {"headers": {"Idempotency-Key": "several"}}
    body = {"message": "[@coder: one] [@worker: two]"}
    first = served.post("/api/message", body, **again)
    assert len(first["messages"]) == 2
    assert served.post("/api/message", body, **again) == {**first, "fresh": False}


def test_an_idempotency_key_is_taken_whole_or_refused(served: Served) -> None:
    for key in ("x" * 201, "caf\xe9"):
        answered = served.refused(
            "POST",
            "/api/message",
            {"message": "x"},
            headers={"Idempotency-Key": key.encode("latin-1")},
        )
        assert answered == (400, "bad_request")


def test_an_id_of_a_clients_own_is_plain(served: Served, subtests: pytest.Subtests) -> None:
    for id_ in ("x;touch pwned;#", "a/b", "a b", "a\nb", "abc\n", "", "x" * 201):
        with subtests.test(id=id_):
            body = {"message": "x", "messageId": id_}
            assert served.refused("POST", "/api/message", body) == (400, "bad_request")
