"""Answers to people over the API: listed, taken, written, sent again, set aside."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from bullpen.core.access.keys import Scope
from bullpen.core.message import Answer, Outcome
from bullpen.core.outbox.delivery import begin_part, mark_unknown
from bullpen.core.outbox.leases import lease_responses
from bullpen.core.queue.claim import claim
from bullpen.core.queue.finish import finish
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from tests.api.served import Served

Document = dict[str, Any]

NUMBERS = itertools.count(1)


@pytest.fixture
def channel() -> str:
    """A channel of this test alone."""
    return f"channel{next(NUMBERS)}"


def answered(served: Served, inside: Store, channel: str, text: str, **more: Any) -> Document:  # noqa: ANN401
    """A question of Ada's to the coder, answered so; gives the response."""
    body = {"message": "@coder what?", "channel": channel, "sender": "Ada", "senderId": "ada"}
    sent = served.post("/api/message", body)["messageId"]
    with inside.write() as tx:
        found = claim(tx, "test", agent="coder")
        assert found is not None
        finish(tx, found, Outcome(answers=(Answer(message=text, **more),)))
    (response,) = served.get(f"/api/responses?message_id={sent}")
    return dict(response)


def wrote(served: Served, channel: str, text: str, **more: object) -> Document:
    """What was written to Ada of our own accord."""
    body = {"channel": channel, "sender": "Ada", "message": text, **more}
    sent = served.post("/api/responses", body)["messageId"]
    (response,) = served.get(f"/api/responses?message_id={sent}")
    return dict(response)


def ids(found: list[Document]) -> list[int]:
    """The numbers of these responses."""
    return [each["id"] for each in found]


def test_an_answer_is_listed_as_the_references_clients_read_it(
    served: Served, inside: Store, channel: str
) -> None:
    found = answered(served, inside, channel, "42", metadata='{"mood": "good"}')
    assert served.get(f"/api/responses/{found['id']}") == found
    assert found["timestamp"] == found["availableAt"] > 0
    expected = {
        "channel": channel,
        "sender": "Ada",
        "senderId": "ada",
        "message": "42",
        "originalMessage": "what?",
        "messageId": found["conversationId"],
        "agent": "coder",
        "files": [],
        "metadata": {"mood": "good"},
        "status": "pending",
        "ackedAt": None,
    }
    assert {key: found[key] for key in expected} == expected


def test_the_newest_come_first_and_twenty_if_nothing_is_said(served: Served, channel: str) -> None:
    made = [wrote(served, channel, str(number))["id"] for number in range(22)]
    assert ids(served.get(f"/api/responses?channel={channel}")) == made[:1:-1]
    assert ids(served.get(f"/api/responses?channel={channel}&limit=3")) == made[:-4:-1]
    pages, since = [], made[0] - 1
    for _ in range(5):
        path = f"/api/responses?channel={channel}&limit=8&since_id={since}"
        response = served.ask("GET", path)
        pages += ids(response.json())
        if not response.json():
            break
        since = int(response.headers["X-Next-Cursor"])
    assert pages == made


def test_what_cannot_be_asked_for_is_refused(served: Served, subtests: pytest.Subtests) -> None:
    for query in [
        *("limit=abc", "limit=-1", "limit=0", "limit=501", "limit=1e3", "since_id=-1"),
        *(f"since_id={1 << 70}", "status=gone", "channel=a%00b", "agent=a%00b"),
    ]:
        with subtests.test(query=query):
            assert served.refused("GET", f"/api/responses?{query}")[0] == 400


def test_what_is_to_be_delivered_is_listed_the_oldest_first(
    served: Served, inside: Store, channel: str
) -> None:
    made = [wrote(served, channel, str(number))["id"] for number in range(3)]
    assert ids(served.get(f"/api/responses/pending?channel={channel}")) == made
    served.post(f"/api/responses/{made[0]}/ack")
    with inside.write() as tx:
        (leased,) = lease_responses(tx, channel, "client", limit=1)
    assert leased.id == made[1]
    # Another client is about to deliver that one.
    assert ids(served.get(f"/api/responses/pending?channel={channel}")) == made[2:]
    assert served.refused("GET", "/api/responses/pending")[0] == 400
    assert served.refused("GET", "/api/responses/pending?channel=a%00b")[0] == 400


def test_an_ack_is_kept_and_a_repeat_changes_nothing(served: Served, channel: str) -> None:
    number = wrote(served, channel, "hello")["id"]
    path = f"/api/responses/{number}"
    assert served.post(f"{path}/ack") == {"ok": True}
    first = served.get(path)
    assert (first["status"], first["ackedAt"] > 0) == ("acked", True)
    assert served.post(f"{path}/ack") == {"ok": True}
    assert served.get(path) == first
    with ThreadPoolExecutor(8) as pool:
        other = wrote(served, channel, "hello")["id"]
        acks = [pool.submit(served.post, f"/api/responses/{other}/ack") for _ in range(16)]
        assert [each.result() for each in acks] == [{"ok": True}] * 16


def test_a_response_that_does_not_exist_is_not_acked(
    served: Served, subtests: pytest.Subtests
) -> None:
    for number in ["0", "999999", "NaN", "-1", "1.5", "9" * 30, "x%00", "%20", "٣"]:
        with subtests.test(number=number):
            for verb in ("ack", "send-again"):
                refused = served.refused("POST", f"/api/responses/{number}/{verb}")
                assert refused == (404, "unknown_response")
            assert served.refused("POST", f"/api/responses/{number}/give-up", {})[0] == 404
            assert served.refused("GET", f"/api/responses/{number}") == (404, "unknown_response")
            assert served.refused("GET", f"/api/responses/{number}/files/0")[0] == 404


def test_a_person_sets_an_answer_aside_and_sends_it_again(served: Served, channel: str) -> None:
    number = wrote(served, channel, "hello")["id"]
    path = f"/api/responses/{number}"
    assert served.refused("POST", f"{path}/send-again") == (409, "illegal_move")
    served.post(f"{path}/give-up", {"reason": "she left"})
    assert served.get(path)["lastError"] == "she left"
    assert served.refused("POST", f"{path}/ack") == (409, "illegal_move")
    assert served.refused("POST", f"{path}/give-up", {}) == (409, "illegal_move")
    assert ids(served.get(f"/api/responses/pending?channel={channel}")) == []
    served.post(f"{path}/send-again")
    assert ids(served.get(f"/api/responses/pending?channel={channel}")) == [number]


def test_what_may_have_arrived_is_labelled_when_it_is_sent_again(
    served: Served, inside: Store, channel: str
) -> None:
    number = wrote(served, channel, "hello")["id"]
    with inside.write() as tx:
        (leased,) = lease_responses(tx, channel, "client", limit=1)
        assert leased.claim_token is not None
        begin_part(tx, leased.claim_token)
        mark_unknown(tx, leased.claim_token, "no answer came")
    assert served.get(f"/api/responses/{number}")["status"] == "unknown"
    served.post(f"/api/responses/{number}/send-again")
    (found,) = served.get(f"/api/responses/pending?channel={channel}")
    assert found["possibleDuplicate"] is True


def test_what_is_written_of_our_own_accord_has_an_id_that_says_so(
    served: Served, channel: str
) -> None:
    body = {"channel": channel, "sender": "Ada", "message": "the build broke"}
    sent = served.post("/api/responses", {**body, "senderId": "ada", "agent": "coder"})
    assert sent["ok"] is True
    assert sent["messageId"].startswith("proactive_")
    (found,) = served.get(f"/api/responses/pending?channel={channel}")
    assert (found["messageId"], found["agent"]) == (sent["messageId"], "coder")
    assert (found["message"], found["originalMessage"]) == ("the build broke", "")


def test_what_cannot_be_written_is_refused(served: Served, subtests: pytest.Subtests) -> None:
    changes: list[dict[str, object]] = [
        {"channel": None},
        {"channel": "Not A Channel"},
        {"sender": ""},
        {"message": None},
        {"message": ""},
        {"message": "a\x00b"},
        {"message": "\ud800"},
        {"sender": "a\x00b"},
        {"senderId": "a\x00b"},
        {"metadata": "text"},
        {"files": "a.txt"},
        {"files": ["x"] * 65},
        {"more": 1},
    ]
    for change in changes:
        with subtests.test(change=change):
            body = {"channel": "refused", "sender": "Ada", "message": "hi", **change}
            assert served.refused("POST", "/api/responses", body)[0] == 400
            assert served.get("/api/responses/pending?channel=refused") == []


def test_who_does_not_exist_writes_nothing(served: Served, channel: str) -> None:
    for agent in ("nobody", "🐂"):
        body = {"channel": channel, "sender": "Ada", "message": "hi", "agent": agent}
        assert served.refused("POST", "/api/responses", body) == (404, "unknown_agent")


@pytest.fixture
def home(office: Settings, channel: str) -> Callable[[str, str], str]:
    """Puts a file into the coder's directory; gives its name."""

    def put(name: str, text: str) -> str:
        directory = office.workspace / "coder"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"{channel}{name}").write_text(text)
        return f"{channel}{name}"

    return put


Put = Callable[[str, str], str]


def test_a_file_goes_with_it_and_is_downloaded(
    served: Served, office: Settings, channel: str, home: Put
) -> None:
    name = home("<b>é.html", "<script>alert(1)</script>")
    found = wrote(served, channel, "look", agent="coder", files=[name])
    assert found["files"] == [str(office.workspace / "coder" / name)]
    response = served.ask("GET", f"/api/responses/{found['id']}/files/0")
    assert response.text == "<script>alert(1)</script>"
    assert response.headers["Content-Disposition"].startswith("attachment;")
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Content-Security-Policy"].startswith("sandbox")
    for number in ("1", "-1", "x", "9" * 40, "%00"):
        refused = served.refused("GET", f"/api/responses/{found['id']}/files/{number}")
        assert refused == (404, "unknown_file")


def test_an_uploaded_file_goes_with_it_by_its_name(
    served: Served, office: Settings, channel: str
) -> None:
    office.files.mkdir(exist_ok=True)
    (office.files / f"{channel}.txt").write_text("mine")
    found = wrote(served, channel, "look", files=[f"{channel}.txt"])
    assert served.ask("GET", f"/api/responses/{found['id']}/files/0").text == "mine"
    found = wrote(served, channel, "look", files=[f"{channel}.txt"], agent="coder")
    assert found["files"] == [str(office.files / f"{channel}.txt")]


def test_other_files_do_not_leave(
    served: Served, office: Settings, channel: str, home: Put
) -> None:
    inside = home("inside.txt", "theirs")
    link = office.workspace / "coder" / f"{channel}link"
    link.symlink_to(office.token_file)
    pipe = office.workspace / "coder" / f"{channel}pipe"
    os.mkfifo(pipe)
    body = {"channel": channel, "sender": "Ada", "message": "hi"}
    for files in (
        ["/etc/hostname"],
        [str(office.token_file)],
        ["../../token"],
        [".."],
        [""],
        ["none"],
        ["x" * 4000],
        ["a\x00b"],
        [link.name],
        [pipe.name],
        ["."],
    ):
        for agent in ({}, {"agent": "coder"}):
            refused = served.refused("POST", "/api/responses", {**body, "files": files, **agent})
            assert refused == (404, "unknown_file"), files
    # Without the agent's name its directory is out of reach as well.
    assert served.refused("POST", "/api/responses", {**body, "files": [inside]})[0] == 404
    assert served.get(f"/api/responses/pending?channel={channel}") == []


def test_a_file_that_was_replaced_by_a_link_meanwhile_does_not_leave(
    served: Served, office: Settings, channel: str, home: Put
) -> None:
    name = home("a.txt", "theirs")
    found = wrote(served, channel, "look", agent="coder", files=[name])
    path = office.workspace / "coder" / name
    path.unlink()
    path.symlink_to(office.token_file)
    for _ in range(2):
        response = served.ask("GET", f"/api/responses/{found['id']}/files/0")
        assert response.status_code == 404
        assert served.token not in response.text
        path.unlink()
        os.mkfifo(path)


def test_a_key_reaches_the_answers_of_its_agents_alone(
    served: Served, inside: Store, channel: str
) -> None:
    every = (Scope.READ, Scope.PUBLISH, Scope.APPROVE)
    own, foreign = served.key(*every, agents=("coder",)), served.key(*every, agents=("worker",))
    number = answered(served, inside, channel, "42")["id"]
    path = f"/api/responses/{number}"
    assert served.get(path, token=own)["id"] == number
    assert number in ids(served.get("/api/responses?agent=coder", token=own))
    assert served.refused("GET", "/api/responses", token=own) == (403, "out_of_reach")
    pending = f"/api/responses/pending?channel={channel}"
    assert served.refused("GET", pending, token=own) == (403, "out_of_reach")
    body = {"channel": channel, "sender": "Ada", "message": "hi"}
    for ask in (
        ("GET", path),
        ("GET", f"{path}/files/0"),
        ("POST", f"{path}/ack"),
        ("POST", f"{path}/send-again"),
        ("POST", f"{path}/give-up", {}),
        ("GET", "/api/responses?agent=coder"),
        ("POST", "/api/responses", body),
        ("POST", "/api/responses", {**body, "agent": "coder"}),
    ):
        assert served.refused(*ask, token=foreign) == (403, "out_of_reach"), ask
    served.post("/api/responses", {**body, "agent": "coder"}, token=own)
    served.post(f"{path}/ack", token=own)


def test_who_only_reads_changes_nothing(served: Served, channel: str) -> None:
    path = f"/api/responses/{wrote(served, channel, 'hi')['id']}"
    reader, speaker = served.key(Scope.READ), served.key(Scope.PUBLISH)
    for verb, token in (
        ("ack", reader),
        ("send-again", reader),
        ("give-up", reader),
        ("send-again", speaker),
        ("give-up", speaker),
    ):
        refused = served.refused("POST", f"{path}/{verb}", {}, token=token)
        assert refused == (403, "scope_too_small")
    served.post(f"{path}/ack", token=speaker)
