"""Heartbeats over the API: set, looked at, and what is in an agent's heartbeat.md."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bullpen.core.access.keys import Scope
from bullpen.core.clock import get_zone
from bullpen.core.heartbeats.manage import get_heartbeat
from bullpen.core.heartbeats.model import SILENT_ANSWER
from bullpen.core.heartbeats.run import send_heartbeat
from bullpen.core.message import ErrorKind
from bullpen.core.store.base import Store
from tests.api.served import Served
from tests.api.work import hired
from tests.conformance.verbs import events, failed, take
from tests.streams.talking import Talker

Document = dict[str, Any]

FORBIDDEN = "what-lies-outside"


@pytest.fixture
def agent(inside: Store) -> str:
    """An agent of this test alone."""
    return hired(inside, "beater")


@pytest.fixture
def path(agent: str) -> str:
    """Where its heartbeat is."""
    return f"/api/agents/{agent}/heartbeat"


def beats(store: Store, agent: str) -> str:
    """Let its heart beat now; gives the message's id."""
    with store.read() as tx:
        heartbeat = get_heartbeat(tx, agent)
    with store.write() as tx:
        assert send_heartbeat(tx, heartbeat, "look after it", get_zone("UTC"))
    with store.read() as tx:
        return str(tx.fetch(f"SELECT max(message_id) FROM beats WHERE agent = '{agent}'"))


def answers(served: Served, agent: str, text: str) -> None:
    """Answer what it was woken for, as a worker outside."""
    claimed = served.post("/api/queue/claim", {"agent": agent, "worker": "me"})
    served.post("/api/queue/complete", {"token": claimed["token"], "response": text})


def test_it_is_off_until_somebody_turns_it_on(served: Served, agent: str, path: str) -> None:
    found = served.get(path)
    told = {name: found[name] for name in ("enabled", "interval", "state", "reason", "hours")}
    assert told == {
        "enabled": False,
        "interval": 3600,
        "state": "off",
        "reason": None,
        "hours": None,
    }
    assert (found["agent"], found["to"], found["due_at"]) == (agent, "owner", None)
    assert found["path"] == str(served.settings.workspace / agent / "heartbeat.md")
    assert found["content"].strip()
    assert agent not in {each["agent"] for each in served.get("/api/heartbeats")}
    assert served.ok("PUT", path, {"enabled": True, "interval": 600}) == {"ok": True}
    on = served.get(path)
    assert (on["enabled"], on["interval"], on["state"]) == (True, 600, "on")
    assert on["due_at"] > 0
    (listed,) = (each for each in served.get("/api/heartbeats") if each["agent"] == agent)
    assert listed == {name: on[name] for name in listed}
    served.ok("PUT", path, {"enabled": False})
    off = served.get(path)
    assert (off["enabled"], off["interval"], off["due_at"]) == (False, 600, None)


def test_what_is_not_sent_stays(served: Served, path: str) -> None:
    whole: Document = {
        "enabled": True,
        "interval": 1800,
        "hours": "22:00-06:00",
        "budget": 5,
        "max_silent": 3,
        "to": "telegram:4711",
        "content": "Look at the mail. ☃\n",
    }
    served.ok("PUT", path, whole)
    for name, value in (
        ("interval", 60),
        ("hours", None),
        ("hours", "08:00-18:00"),
        ("budget", 1440),
        ("max_silent", 0),
        ("to", "owner"),
        ("content", ""),
        ("enabled", False),
    ):
        served.ok("PUT", path, {name: value})
        whole[name] = value
        found = served.get(path)
        assert {each: found[each] for each in whole} == whole


def test_what_was_shown_can_be_sent_back_and_changes_nothing(served: Served, path: str) -> None:
    served.ok("PUT", path, {"enabled": True, "to": "web:ann", "content": "x"})
    found = served.get(path)
    served.ok("PUT", path, {**found, "state": "paused", "due_at": 1, "unknown": [1]})
    assert served.get(path) == found
    nulls = dict.fromkeys(set(found) - {"hours"})
    served.ok("PUT", path, nulls)
    assert served.get(path) == found


def test_the_text_is_what_is_in_the_agents_file(served: Served, agent: str, path: str) -> None:
    file = served.settings.workspace / agent / "heartbeat.md"
    served.ok("PUT", path, {"content": "# Ada's\n\nround — with care ☃\n"})
    assert file.read_text() == "# Ada's\n\nround — with care ☃\n"
    file.write_text("written by the agent")
    assert served.get(path)["content"] == "written by the agent"
    file.unlink()
    assert served.get(path)["content"] == ""
    # Only what is told is changed: nobody set it up.
    assert agent not in {each["agent"] for each in served.get("/api/heartbeats")}


@pytest.fixture
def outside(served: Served) -> Iterator[Path]:
    """A file that is no agent's."""
    file = served.settings.home / "outside.md"
    file.write_text(FORBIDDEN)
    yield file
    assert file.read_text() == FORBIDDEN
    file.unlink()


@pytest.mark.parametrize("kind", ["link", "directory link", "pipe", "directory"])
def test_what_the_agent_puts_in_its_place_leads_nowhere(
    served: Served, agent: str, path: str, outside: Path, kind: str
) -> None:
    home = served.settings.workspace / agent
    served.ok("PUT", path, {"content": "before"})
    file = home / "heartbeat.md"
    elsewhere = served.settings.home / f"elsewhere-{agent}"
    file.unlink()
    match kind:
        case "link":
            file.symlink_to(outside)
        case "directory link":
            home.rename(elsewhere)
            (elsewhere / "heartbeat.md").write_text(FORBIDDEN)
            home.symlink_to(elsewhere)
        case "pipe":
            os.mkfifo(file)
        case "directory":
            file.mkdir()
    assert served.get(path)["content"] == ""
    refused = served.refused("PUT", path, {"content": "mine", "enabled": True})
    assert refused == (409, "in_the_way")
    assert served.get(path)["enabled"] is False
    if kind == "directory link":
        assert (elsewhere / "heartbeat.md").read_text() == FORBIDDEN


def test_what_cannot_be_is_refused_and_nothing_is_changed(
    served: Served, path: str, subtests: pytest.Subtests
) -> None:
    changes: list[tuple[dict[str, object], str]] = [
        ({"interval": 59}, "bad_heartbeat"),
        ({"interval": 0}, "bad_heartbeat"),
        ({"interval": (1 << 53) - 1}, "bad_heartbeat"),
        ({"interval": 1 << 70}, "bad_request"),
        ({"interval": -1}, "bad_request"),
        ({"interval": "often"}, "bad_request"),
        ({"hours": "8-18"}, "bad_heartbeat"),
        ({"hours": "25:00-26:00"}, "bad_heartbeat"),
        ({"hours": "24:00-06:00"}, "bad_heartbeat"),
        ({"hours": "08:60-18:00"}, "bad_heartbeat"),
        ({"hours": "08:00-08:00"}, "bad_heartbeat"),
        ({"hours": ""}, "bad_heartbeat"),
        ({"hours": "0" * 50}, "bad_request"),
        ({"budget": 0}, "bad_heartbeat"),
        ({"budget": 1441}, "bad_heartbeat"),
        ({"budget": (1 << 53) - 1}, "bad_heartbeat"),
        ({"max_silent": (1 << 53) - 1}, "bad_heartbeat"),
        ({"max_silent": -1}, "bad_request"),
        ({"to": "telegram:@ann"}, "bad_place"),
        ({"to": "pigeon:1"}, "bad_place"),
        ({"to": ""}, "bad_place"),
        ({"to": "web:a\x00b"}, "bad_place"),
        ({"content": "a\x00b"}, "bad_text"),
        ({"content": "\ud800"}, "bad_text"),
        ({"content": 5}, "bad_request"),
        ({"enabled": "perhaps"}, "bad_request"),
    ]
    for given, code in changes:
        with subtests.test(given=given, code=code):
            before = served.get(path)
            response = served.ask("PUT", path, {"enabled": True, "content": "new", **given})
            error = response.json()
            assert (response.status_code, error["code"]) == (400, code), error
            assert error["hint"]
            assert served.get(path) == before


def test_who_does_not_exist_has_none(served: Served) -> None:
    for method, more, body in (("GET", "", None), ("PUT", "", {}), ("GET", "/beats", None)):
        for name in ("nobody", "..", "a%00b", "%ff", "x" * 3000):
            response = served.ask(method, f"/api/agents/{name}/heartbeat{more}", body)
            assert response.status_code in (400, 404), response.text
    assert served.refused("GET", "/api/agents/nobody/heartbeat") == (404, "unknown_agent")


def test_beats_are_listed_with_what_came_of_them(
    served: Served, inside: Store, agent: str, path: str
) -> None:
    served.ok("PUT", path, {"enabled": True, "interval": 600, "to": "web:ann"})
    beats(inside, agent)
    (sent,) = served.get(f"{path}/beats")
    assert (sent["outcome"], sent["reason"]) == ("sent", None)
    assert sent["message_id"].startswith("heartbeat_")
    answers(served, agent, SILENT_ANSWER)
    beats(inside, agent)
    answers(served, agent, "the disk is full")
    beats(inside, agent)
    failed(inside, take(inside, agent).token, ErrorKind.RETRYABLE, "it broke")
    found = served.get(f"{path}/beats")
    assert [each["outcome"] for each in found] == ["failed", "said", "silent"]
    assert found[0]["reason"] == "it broke"
    first = served.ask("GET", f"{path}/beats?since_id=0&limit=2")
    rest = served.get(f"{path}/beats?since_id={first.headers['X-Next-Cursor']}")
    assert first.json() + rest == found[::-1]
    said = [each["message"] for each in served.get("/api/responses") if each["agent"] == agent]
    assert said == ["the disk is full"]
    now = served.get(path)
    assert (now["errors"], now["silent"]) == (1, 0)
    assert now["last_at"] == found[0]["fired_at"]


def test_the_status_tells_who_was_woken(served: Served, inside: Store) -> None:
    for each in served.get("/api/heartbeats"):
        served.ok("PUT", f"/api/agents/{each['agent']}/heartbeat", {"enabled": False})
    before = served.get("/api/status")["heartbeat"]
    assert (before["running"], before["interval"]) == (False, 0)
    often, seldom = hired(inside, "beater"), hired(inside, "beater")
    served.ok("PUT", f"/api/agents/{often}/heartbeat", {"enabled": True, "interval": 600})
    served.ok("PUT", f"/api/agents/{seldom}/heartbeat", {"enabled": True, "interval": 7200})
    beats(inside, often)
    found = served.get("/api/status")["heartbeat"]
    assert (found["running"], found["interval"]) == (True, 600)
    last = served.get(f"/api/agents/{often}/heartbeat")["last_at"]
    assert found["lastSent"][often] == last
    assert seldom not in found["lastSent"]
    key = served.key(Scope.READ, agents=(seldom,))
    mine = served.get("/api/status", token=key)["heartbeat"]
    assert mine == {"running": True, "interval": 7200, "lastSent": {}}


def test_a_limited_key_reaches_its_agents_alone(served: Served, inside: Store) -> None:
    mine, yours = hired(inside, "beater"), hired(inside, "beater")
    for each in (mine, yours):
        served.ok("PUT", f"/api/agents/{each}/heartbeat", {"enabled": True})
    key = served.key(Scope.ADMIN, agents=(mine,))
    assert [each["agent"] for each in served.get("/api/heartbeats", token=key)] == [mine]
    served.ok("PUT", f"/api/agents/{mine}/heartbeat", {"enabled": False}, token=key)
    for name in (yours, "nobody"):
        for method, more, body in (("GET", "", None), ("PUT", "", {}), ("GET", "/beats", None)):
            path = f"/api/agents/{name}/heartbeat{more}"
            assert served.refused(method, path, body, token=key) == (403, "out_of_reach")


def test_only_an_admin_changes_it_and_that_is_in_the_audit_log(served: Served, path: str) -> None:
    weak = served.key(Scope.READ, Scope.PUBLISH, Scope.APPROVE, Scope.CLAIM)
    assert served.refused("PUT", path, {}, token=weak) == (403, "scope_too_small")
    served.get(path, token=weak)
    served.ok("PUT", path, {"content": "only this"})
    (line,) = served.get("/api/audit?limit=1")
    assert (line["action"], line["target"], line["outcome"]) == ("heartbeats put", path, "done")


@pytest.mark.parametrize("channel", ["heartbeat", "internal", "chatroom"])
def test_nobody_writes_on_bullpens_own_channels_but_bullpen(
    served: Served, inside: Store, channel: str
) -> None:
    before = len(events(inside))
    for more in ({}, {"messageId": "heartbeat_1"}, {"agent": "coder"}):
        body = {"message": "@worker wake up", "channel": channel, **more}
        for token in (served.token, served.key(Scope.PUBLISH)):
            response = served.ask("POST", "/api/message", body, token=token)
            error = response.json()
            assert (response.status_code, error["code"]) == (400, "bad_request")
            assert "/api/agents/<id>/heartbeat" in error["hint"]
    talker = Talker(served.url, served.token)
    refused = talker.ask(do="send", message="@worker wake up", channel="heartbeat")
    talker.socket.close()
    assert refused["code"] == "bad_request"
    assert [each["type"] for each in events(inside)[before:] if each["agent"] == "worker"] == []
    # A client may say something on the channel of schedules: nobody is told the answer.
    served.post("/api/message", {"message": "@worker hello", "channel": "schedule"})


def test_times_are_counted_in_the_metrics(served: Served, path: str) -> None:
    def gauge(name: str, state: str) -> float:
        lines = served.ask("GET", "/metrics").text.splitlines()
        (line,) = (each for each in lines if each.startswith(f'{name}{{state="{state}"}}'))
        return float(line.split()[-1])

    before = gauge("bullpen_heartbeats", "on"), gauge("bullpen_schedules", "paused")
    served.ok("PUT", path, {"enabled": True})
    body = {"agentId": "coder", "message": "x", "every_seconds": 60, "enabled": False}
    served.post("/api/schedules", body)
    after = gauge("bullpen_heartbeats", "on"), gauge("bullpen_schedules", "paused")
    assert after == (before[0] + 1, before[1] + 1)
    assert gauge("bullpen_schedules", "done") == 0
