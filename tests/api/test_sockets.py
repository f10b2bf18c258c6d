"""The WebSocket: the same events, commands by the rights of who gives them, and no way to harm."""

from __future__ import annotations

import os
import signal
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from bullpen.core.access.keys import Scope, list_keys, revoke_key
from bullpen.core.access.owner import rotate_token
from bullpen.core.events.append import append_event
from bullpen.core.events.system import ProcessorStart
from bullpen.core.events.tail import EventTail
from bullpen.core.message import Answer, Outcome
from bullpen.core.queue.claim import claim
from bullpen.core.queue.finish import finish
from bullpen.core.store.base import Store
from tests.api.served import Served, serving
from tests.api.stopping import stopped_at_once
from tests.stores import Stores
from tests.streams.talking import (
    BINARY,
    CLOSE,
    LIMIT_SECONDS,
    PING,
    PONG,
    TEXT,
    Document,
    Talker,
    refused,
)

Connect = Callable[..., Talker]


@pytest.fixture
def connect(served: Served) -> Iterator[Connect]:
    """Opens connections; the first text of each was read."""
    opened: list[Talker] = []

    def one(query: str = "", token: str | None = None, **headers: str) -> Talker:
        secret = served.token if token is None else token
        if "since_id" not in query:
            # Not "from now on": what happened just before may still be on its way.
            query = f"{query}&since_id={served.get('/api/events?limit=1')[0]['id']}"
        opened.append(Talker(served.url, secret, query, **headers))
        assert opened[-1].status == 101, opened[-1].head
        hello = opened[-1].next()
        assert set(hello) == {"type", "timestamp", "position"}
        opened[-1].last = hello["position"]
        return opened[-1]

    yield one
    for each in opened:
        each.close()


def newest(store: Store) -> int:
    """The last event's id."""
    return EventTail.from_now(store).position


def happen(store: Store, count: int, size: int = 10) -> None:
    """Let so much happen."""
    for _ in range(count):
        with store.write() as tx:
            append_event(tx, ProcessorStart(worker="w" * size))


def ids(found: list[Document]) -> list[int]:
    """Of the events."""
    return [each["id"] for each in found if "id" in each]


def code(answer: Document) -> str:
    """Of an error, which has the shape that all have."""
    assert answer["type"] == "error", answer
    assert {*answer} == {"type", "ref", "error", "code", "hint"}
    return str(answer["code"])


def test_events_come_in_order_under_both_names_and_again_after_a_cut(
    served: Served, inside: Store, connect: Connect
) -> None:
    first = connect()
    since = first.last
    assert since is not None
    sent = served.post("/api/message", {"message": "@coder hello", "sender": "Ada"})
    found = first.until("agent_routed")
    assert [each["type"] for each in found] == [
        *("message:incoming", "message_enqueued", "agent_routed"),
    ]
    assert "id" not in found[0]
    assert found[1]["messageId"] == sent["messageId"]
    assert found[1]["message"] == "hello"
    first.close()
    happen(inside, 30)
    again = connect(f"since_id={first.last}")
    happen(inside, 30)
    got = ids(found) + ids(again.upto(newest(inside)))
    assert got == list(range(since + 1, since + 63)) or got == sorted(set(got))
    assert len(got) == 62


def test_a_chat_is_asked_answered_and_read(inside: Store, connect: Connect) -> None:
    talker = connect("types=response_ready")
    done = talker.ask(do="send", message="@other what is it?", sender="Ada", senderId="7")
    assert done["type"] == "done"
    assert done["messageId"].startswith("web_")
    assert done["messages"] == [done["messageId"]]
    with inside.write() as tx:
        claimed = claim(tx, "w", agent="other")
    assert claimed is not None
    assert (claimed.primary.sender, claimed.primary.channel) == ("Ada", "web")
    with inside.write() as tx:
        finish(tx, claimed, Outcome(answers=(Answer(message="it is é"),)))
    ready = talker.next()
    assert (ready["messageId"], ready["responseText"]) == (done["messageId"], "it is é")
    number = ready["data"]["response"]
    assert talker.ask(do="ack", id=number) == {"type": "done", "ref": "asked", "id": number}
    assert talker.ask(do="ack", id=number)["type"] == "done"
    assert code(talker.ask(do="ack", id=10**9)) == "unknown_response"


def test_a_post_in_a_room_reaches_everybody_with_its_text(connect: Connect) -> None:
    ada, bob = connect("types=room_posted&team=dev"), connect("types=room_posted&team=dev")
    done = ada.ask(do="post", team="dev", message="hello room", sender="Ada")
    assert done["conversationId"].startswith("chatroom_")
    posted = bob.next()
    assert (posted["teamId"], posted["author"], posted["text"]) == ("dev", "Ada", "hello room")
    assert posted["data"]["post"] == done["id"]
    assert code(ada.ask(do="post", team="nobody", message="x", sender="Ada")) == "unknown_team"
    assert code(ada.ask(do="post", team="dev", message="x", sender="coder")) == "name_taken"


def test_a_client_changes_its_mind_about_what_it_wants(
    served: Served, inside: Store, connect: Connect
) -> None:
    talker = connect("types=nothing")
    since = talker.last
    happen(inside, 3)
    assert talker.ask(do="subscribe", since_id=since)["position"] == since
    assert len(talker.upto(newest(inside))) == 3
    assert talker.ask(do="subscribe", agent="coder", types=["message_enqueued"])["type"] == "done"
    served.post("/api/message", {"message": "@worker one"})
    served.post("/api/message", {"message": "@coder two"})
    assert talker.next()["message"] == "two"
    assert talker.ask(do="subscribe", types=["message:incoming"], since_id=0)["position"] == 0
    found = talker.next()
    assert (found["type"], found["id"] > 0) == ("message:incoming", True)


def test_every_command_is_answered_under_its_name(connect: Connect) -> None:
    talker = connect("types=nothing")
    for ref in ("a", 7, None):
        talker.say(do="ping", ref=ref)
        found = talker.next()
        assert (found["type"], found["ref"]) == ("done", ref)
        assert found["timestamp"] > 0


NONSENSE: list[Any] = [
    b"",
    b"nonsense",
    b"[]",
    b"5",
    b"null",
    b'"send"',
    b"{}",
    b'{"do":"fly"}',
    b'{"do":["send"]}',
    b'{"do":"ping","more":1}',
    b'{"do":"send"}',
    b'{"do":"send","message":5}',
    b'{"do":"send","message":""}',
    b'{"do":"send","message":"a\\u0000b"}',
    b'{"do":"send","message":"\\ud800"}',
    b'{"do":"send","message":"@nobody hi"}',
    b'{"do":"subscribe","since_id":-1}',
    b'{"do":"subscribe","since_id":1e400}',
    b'{"do":"subscribe","since_id":9999999999999999999999}',
    b'{"do":"subscribe","agent":"\\u0000"}',
    b'{"do":"subscribe","types":["\\ud800"]}',
    b'{"do":"subscribe","types":"all"}',
    b'{"do":"ack","id":0}',
    b'{"do":"ack","id":true}',
    b'{"do":"ping","ref":{"a":1}}',
    b'{"do":"ping","ref":"' + b"x" * 201 + b'"}',
    b"[" * 100_000,
    b"1" * 10_000,
    b'{"do":NaN}',
]


def test_nonsense_is_answered_and_never_ends_the_connection(connect: Connect) -> None:
    talker = connect("types=nothing")
    for text in NONSENSE:
        talker.send(TEXT, text)
        assert code(talker.next()) in ("bad_request", "bad_text", "unknown_recipient"), text
    talker.send(BINARY, b"\x00\xff")
    assert code(talker.next()) == "bad_request"
    talker.send(PING, b"there?")
    assert talker.frame() == (PONG, b"there?")
    assert talker.ask(do="ping")["type"] == "done"


def test_a_command_needs_the_scope_that_its_route_needs(served: Served, connect: Connect) -> None:
    reader = connect("types=nothing", token=served.key(Scope.READ))
    for command in (
        {"do": "send", "message": "@coder hi"},
        {"do": "post", "team": "dev", "message": "hi", "sender": "Ada"},
        {"do": "ack", "id": 1},
    ):
        assert code(reader.ask(**command)) == "scope_too_small"
    assert reader.ask(do="ping")["type"] == "done"


def test_a_key_for_some_agents_hears_and_reaches_no_others(
    served: Served, connect: Connect
) -> None:
    key = served.key(Scope.READ, Scope.PUBLISH, agents=("coder",))
    talker = connect(token=key)
    assert code(talker.ask(do="send", message="@worker hi")) == "out_of_reach"
    assert code(talker.ask(do="post", team="dev", message="x", sender="A")) == "out_of_reach"
    assert code(talker.ask(do="subscribe", agent="worker")) == "out_of_reach"
    served.post("/api/message", {"message": "@worker secret"})
    served.post("/api/message", {"message": "@coder mine"})
    found = talker.until("message_enqueued")
    assert "secret" not in str(found)
    assert found[-1]["message"] == "mine"
    assert refused(served.url, key, "agent=worker") == 403


def test_a_revoked_key_is_cut_off_at_once(served: Served, inside: Store, connect: Connect) -> None:
    secret = served.key(Scope.READ)
    talker = connect(token=secret)
    with inside.read() as tx:
        key = list_keys(tx)[-1]
    with inside.write() as tx:
        revoke_key(tx, key.id)
        append_event(tx, ProcessorStart(worker="seen by others"))
    number, reason, before = talker.end()
    assert (number, reason) == (1008, "the key was revoked")
    assert "processor_start" not in [each["type"] for each in before]
    assert refused(served.url, secret) == 401


def test_an_old_token_is_cut_off_at_once(served: Served, inside: Store, connect: Connect) -> None:
    talker, quiet = connect(), connect()
    old = served.token
    rotate_token(served.settings)
    with suppress(ConnectionError):
        talker.say(do="send", message="@coder from the old token")
    served.token = served.settings.token_file.read_text().strip()
    with inside.write() as tx:
        append_event(tx, ProcessorStart(worker="seen by others"))
    number, reason, before = quiet.end()
    assert (number, reason) == (1008, "the owner's token was replaced")
    assert "processor_start" not in [each["type"] for each in before]
    answers = [each for each in talker.end()[2] if "ref" in each]
    assert all(each["code"] == "no_access" for each in answers)
    messages = served.get("/api/messages?agent=coder")
    assert "from the old token" not in [each["message"] for each in messages]
    assert refused(served.url, old) == 401
    connect().ask(do="ping")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "https://evil.example.org"}, 403),
        ({"Host": "evil.example.org"}, 403),
        ({"Authorization": "Bearer nonsense"}, 401),
        ({"Authorization": ""}, 401),
        ({"Sec_WebSocket_Version": "8"}, 400),
        ({"Sec_WebSocket_Key": "short"}, 400),
        ({"Sec_WebSocket_Key": ""}, 400),
        ({"Upgrade": "h2c"}, 400),
        ({"Upgrade": "websocket, other"}, 400),
        ({"Upgrade": ""}, 400),
        ({"Connection": "close"}, 400),
    ],
)
def test_a_handshake_is_refused_as_any_request(
    served: Served, headers: dict[str, str], status: int
) -> None:
    assert refused(served.url, served.token, **headers) == status


@pytest.mark.parametrize("query", ["since_id=-1", "since_id=x", "types=" + "x" * 2001, "agent=%00"])
def test_a_question_that_makes_no_sense_is_refused_before_the_handshake(
    served: Served, query: str
) -> None:
    assert refused(served.url, served.token, query) == 400


def test_a_scope_that_may_not_read_is_refused_before_the_handshake(served: Served) -> None:
    assert refused(served.url, served.key(Scope.PUBLISH)) == 403


def test_a_message_that_is_too_long_closes_with_the_code_for_it(connect: Connect) -> None:
    talker = connect("types=nothing")
    with suppress(ConnectionError):  # it need not wait for the end of it
        talker.send(TEXT, b"x" * (3 << 20))
    number, _, _ = talker.end()
    assert number == 1009


def test_the_longest_message_may_be_sent(connect: Connect) -> None:
    talker = connect("types=nothing")
    assert talker.ask(do="send", message="x" * ((1 << 20) - 100))["type"] == "done"


def test_garbage_on_the_line_ends_one_connection_and_no_other(
    served: Served, connect: Connect
) -> None:
    good = connect("types=nothing")
    for garbage in (
        os.urandom(5000),
        b"\x81\x05hello",  # not masked
        b"\x83\x80\x00\x00\x00\x00",  # no such opcode
        b"\xc1\x80\x00\x00\x00\x00",  # compressed, which was not agreed on
        b"\x81\xff" + b"\xff" * 8 + b"\x00" * 4,  # longer than anything
        b"\x81\x82\x00\x00\x00\x00\xff\xff",  # no UTF-8
        b"\x88\x81\x00\x00\x00\x00\x03",  # half a code
        b"GET / HTTP/1.1\r\n\r\n",
    ):
        bad = connect("types=nothing")
        with suppress(ConnectionError):
            bad.socket.sendall(garbage)
            bad.socket.shutdown(socket.SHUT_WR)
            while bad.socket.recv(1 << 16):
                pass
    assert good.ask(do="ping")["type"] == "done"
    assert "Traceback" not in served.log.read_text()


def test_a_client_that_says_goodbye_is_answered(connect: Connect) -> None:
    talker = connect("types=nothing")
    talker.send(CLOSE, struct.pack(">H", 1000) + b"bye")
    assert talker.end()[0] == 1000
    assert talker.closed()


def test_a_slow_client_is_dropped_with_the_reason_and_comes_back_without_loss(
    inside: Store, connect: Connect
) -> None:
    slow, quick = connect(), connect()
    slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
    since = slow.last
    assert since is not None
    for _ in range(15):
        with inside.write() as tx:
            for _ in range(50):
                append_event(tx, ProcessorStart(worker="w" * 4000))
        quick.upto(newest(inside))
    number, reason, got = slow.end()
    assert (number, bool(reason)) == (1013, True)
    assert 0 < len(got) < 750
    again = connect(f"since_id={got[-1]['id']}")
    assert ids(got) + ids(again.upto(newest(inside))) == list(range(since + 1, since + 751))


def test_who_asks_and_asks_without_reading_is_dropped_and_keeps_nobody_from_anything(
    inside: Store, connect: Connect
) -> None:
    quick, deaf = connect("types=processor_start"), connect("types=nothing")
    # More than the system keeps in between: the last is sent when the first were done.
    for number in range(50_000):
        deaf.say(do="ping", ref=f"{number:0200}")
    happen(inside, 1)
    assert quick.next()["type"] == "processor_start"
    number, _, answers = deaf.end()
    assert number == 1013
    assert [int(each["ref"]) for each in answers] == list(range(len(answers)))


def test_so_many_may_talk_and_others_are_still_served(stores: Stores) -> None:
    more = {"BULLPEN_API_THREADS": "8", "BULLPEN_API_PROCESSES": "1"}
    with serving(stores.settings("sqlite"), **more) as served:
        talkers = [Talker(served.url, served.token) for _ in range(3)]
        assert [each.status for each in talkers] == [101] * 3
        assert refused(served.url, served.token) == 503
        assert served.get("/readyz")["ok"] is True
        talkers.pop().close()
        deadline = time.monotonic() + LIMIT_SECONDS
        while (again := Talker(served.url, served.token)).status != 101:
            again.close()
            assert time.monotonic() < deadline
        for each in (*talkers, again):
            each.close()


def test_it_stops_at_once_with_connections_open_that_do_not_answer(stores: Stores) -> None:
    def attempt() -> float:
        with serving(stores.settings("sqlite")) as served:
            talkers = [Talker(served.url, served.token) for _ in range(10)]
            served.session.close()
            began = time.monotonic()
            served.process.send_signal(signal.SIGTERM)
            for each in talkers:
                assert each.end()[0] == 1001
            assert served.process.wait(LIMIT_SECONDS) == 0
            took = time.monotonic() - began
            for each in talkers:
                each.close()
        assert "ERROR" not in served.log.read_text()
        return took

    assert stopped_at_once(attempt)
