"""TinyAGI's own clients, behind the proxies of the documentation: each call gets what it reads."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests

from bullpen.core.access.keys import Scope
from bullpen.core.company import add_agent
from bullpen.core.roster.agents import Agent
from bullpen.core.roster.teams import Team, add_team
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from tests.answers.talk import answer
from tests.api.served import Served, serving
from tests.conformance.verbs import take
from tests.ports import free_port
from tests.stores import Stores

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "use-tinyagi-clients.md"
OFFICE = "http://localhost:3000"
LIMIT = 60.0
Ask = Callable[..., requests.Response]

NUMBER = (int, float)


class Maybe:
    """A field that may be missing or null."""

    def __init__(self, shape: object) -> None:
        self.shape = shape


class Named:
    """An object of any names, with values of this shape."""

    def __init__(self, shape: object) -> None:
        self.shape = shape


AGENT: dict[str, object] = {"name": str, "provider": str, "model": str, "working_directory": str}
AGENT["system_prompt"] = Maybe(str)
TEAM = {"name": str, "agents": [str], "leader_agent": str}
SENDER = {"channel": str, "senderId": str, "sender": str}
PENDING = {**SENDER, "code": str, "createdAt": NUMBER, "lastSeenAt": NUMBER}
APPROVED = {**SENDER, "approvedAt": NUMBER}
FAMILY = {"model": Maybe(str), "api_key": Maybe(str), "oauth_token": Maybe(str)}
MODELS = {"provider": str, "anthropic": FAMILY, "openai": FAMILY, "opencode": FAMILY}
SETTINGS = {
    "workspace": {"path": str, "name": str},
    "channels": {"enabled": [str]},
    "models": MODELS,
    "agents": Named(AGENT),
    "teams": Named(TEAM),
    "monitoring": {"heartbeat_interval": NUMBER},
}
SCHEDULE = {
    **{"id": str, "label": str, "cron": str, "agentId": str, "message": str, "channel": str},
    **{"sender": str, "enabled": bool, "createdAt": int, "runAt": Maybe(str)},
}
ENTRY = {
    **{"id": int, "agent_id": str, "role": str, "channel": str, "sender": str},
    **{"message_id": str, "content": str, "created_at": int},
}
POST = {"id": int, "team_id": str, "from_agent": str, "message": str, "created_at": int}
RESPONSE = {
    **{"channel": str, "sender": str, "message": str, "originalMessage": str, "timestamp": int},
    **{"messageId": str, "agent": Maybe(str), "files": Maybe([str])},
}
PENDING = {"id": int, "message": str, "messageId": str, "sender": str, "senderId": Maybe(str)}
RUNNING: dict[str, object] = {
    **{"id": int, "messageId": str, "channel": str, "sender": str, "message": str},
    **{"agent": str, "status": str, "processAlive": bool, "startedAt": int, "duration": int},
}
STATUS: dict[str, object] = {
    **{"ok": bool, "uptime": NUMBER, "server": {"running": bool, "port": int}},
    "channels": Named({"running": bool, "pid": Maybe(int)}),
    "heartbeat": {"running": bool, "interval": NUMBER, "lastSent": Named(int)},
}
CUSTOM = {"name": str, "harness": str, "base_url": str, "api_key": str, "model": Maybe(str)}
OK = {"ok": bool}

WRITER = {"name": "Writer", "provider": "anthropic", "model": "sonnet"}
CREW = {"name": "Crew", "agents": ["coder", "writer"], "leader_agent": "coder"}
SERVICE = {
    **{"name": "Local", "harness": "claude", "base_url": "http://127.0.0.1:9"},
    **{"api_key": "sk-x", "model": "m"},
}
DAILY = {"agentId": "coder", "message": "report", "cron": "0 9 * * *"}

CALLS: list[tuple[str, str, object, object]] = [
    ("GET", "/api/settings", None, SETTINGS),
    ("PUT", "/api/agents/writer", WRITER, {"ok": bool, "agent": AGENT}),
    ("GET", "/api/agents", None, Named(AGENT)),
    ("PUT", "/api/teams/crew", CREW, {"ok": bool, "team": TEAM}),
    ("GET", "/api/teams", None, Named(TEAM)),
    ("PUT", "/api/settings", {"models": {}}, {"ok": bool, "settings": SETTINGS}),
    ("POST", "/api/setup", {"agents": {"writer": WRITER}}, {"ok": bool, "settings": SETTINGS}),
    (
        "POST",
        "/api/message",
        {"message": "@busy hi", "agent": "busy", "sender": "Web", "channel": "web"},
        {"ok": bool, "messageId": str},
    ),
    (
        "GET",
        "/api/queue/status",
        None,
        {"incoming": int, "queued": int, "processing": int, "outgoing": int},
    ),
    ("GET", "/api/queue/agents", None, [{"agent": str, "pending": int, "processing": int}]),
    ("GET", "/api/queue/processing", None, [RUNNING]),
    ("GET", "/api/queue/dead", None, []),
    ("GET", "/api/responses?limit=6", None, [RESPONSE]),
    ("GET", "/api/logs?limit=40", None, {"lines": [str]}),
    ("GET", "/api/agents/coder/messages?limit=200&since_id=0", None, [ENTRY]),
    ("GET", "/api/agents/coder/skills", None, [{"id": str, "name": str, "description": str}]),
    ("GET", "/api/agents/coder/system-prompt", None, {"content": str, "path": str}),
    ("PUT", "/api/agents/coder/system-prompt", {"content": "be brief"}, OK),
    (
        "GET",
        "/api/agents/coder/memory",
        None,
        {"index": str, "files": [{"name": str, "path": str}], "memoryDir": str},
    ),
    (
        "GET",
        "/api/agents/coder/heartbeat",
        None,
        {"content": str, "path": str, "enabled": bool, "interval": Maybe(int)},
    ),
    ("PUT", "/api/agents/coder/heartbeat", {"enabled": True, "interval": 3600}, OK),
    ("POST", "/api/chatroom/dev", {"message": "hello"}, OK),
    ("GET", "/api/chatroom/dev?limit=200&since=0", None, [POST]),
    ("POST", "/api/schedules", DAILY, {"ok": bool, "schedule": SCHEDULE}),
    (
        "POST",
        "/api/schedules",
        {"agentId": "coder", "message": "once", "runAt": "2035-01-01T00:00:00.000Z"},
        {"ok": bool, "schedule": SCHEDULE},
    ),
    ("POST", "/api/schedules", {**DAILY, "label": "mine"}, {"ok": bool, "schedule": SCHEDULE}),
    ("GET", "/api/schedules?agent=coder", None, [SCHEDULE]),
    ("PUT", "/api/schedules/mine", {"enabled": False}, {"ok": bool, "schedule": SCHEDULE}),
    ("DELETE", "/api/schedules/mine", None, OK),
    ("GET", "/api/status", None, STATUS),
    ("GET", "/api/pairing", None, {"pending": [PENDING], "approved": [APPROVED]}),
    ("PUT", "/api/custom-providers/local", SERVICE, OK),
    ("GET", "/api/custom-providers", None, Named(CUSTOM)),
    ("DELETE", "/api/custom-providers/local", None, OK),
    ("DELETE", "/api/teams/crew", None, OK),
    ("DELETE", "/api/agents/writer", None, OK),
]
"""Each call of TinyOffice's, in an order in which it can be made, and what it declares to get."""

MISSING = [
    ("GET", "/api/tasks"),
    ("GET", "/api/projects"),
    ("POST", "/api/services/channel/telegram/start"),
    ("GET", "/api/agents/coder/skills/registry?query=x"),
]
"""What does not exist yet, as the page says."""

WHERE: dict[str, object] = {"channel": str, "sender": str, "messageId": str}
EVENTS: dict[str, dict[str, object]] = {
    "message:incoming": {**WHERE, "agent": str, "message": str},
    "agent:response": {
        **WHERE,
        **{"agentId": str, "agentName": str, "role": str, "content": str, "isTeamMessage": bool},
    },
    "message:done": {**WHERE, "agentId": str, "responseLength": int, "responseText": str},
}


def faults(value: object, shape: object, place: str = "") -> list[str]:
    """What of a value is not as a client declares it."""
    match shape:
        case Maybe():
            return [] if value is None else faults(value, shape.shape, place)
        case Named():
            if not isinstance(value, dict):
                return [f"{place} is no object"]
            return [
                each
                for name in value
                for each in faults(value[name], shape.shape, f"{place}.{name}")
            ]
        case list():
            if not isinstance(value, list):
                return [f"{place} is no list"]
            return [each for item in value for each in faults(item, shape[0], f"{place}[]")]
        case dict():
            if not isinstance(value, dict):
                return [f"{place} is no object"]
            return [
                each
                for name, of in shape.items()
                for each in faults(value.get(name), of, f"{place}.{name}")
            ]
        case type() | tuple():
            fits = isinstance(value, shape) and (shape is bool or not isinstance(value, bool))
            return [] if fits else [f"{place} is {value!r}"]
    raise AssertionError(shape)


@pytest.fixture(scope="module")
def desk(stores: Stores) -> Iterator[Served]:
    """An API for pages of TinyOffice, with agents, an answer, a dead letter and a run."""
    settings = stores.settings("sqlite")
    store = open_store(settings)
    with store.write() as tx:
        for agent in ("assistant", "coder", "busy", "slow", "bot"):
            add_agent(tx, Agent(id=agent))
        add_team(tx, Team(id="dev", leader="coder", members=("coder", "busy")))
    settings.logs.mkdir(parents=True, exist_ok=True)
    (settings.logs / "processor.log").write_text("2026-11-19T04:00:00.000Z [INFO] processor: up\n")
    with serving(settings, BULLPEN_API_ORIGINS=OFFICE) as running:
        running.post("/api/message", {"message": "@coder hello", "sender": "Ada"})
        answer(store, "coder", "hi")
        running.post("/api/message", {"message": "@slow work", "sender": "Ada"})
        take(store, "slow")
        yield running
    store.close()


@pytest.fixture
def inside(desk: Served) -> Iterator[Store]:
    """The store behind it."""
    store = open_store(desk.settings)
    yield store
    store.close()


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + LIMIT
    while True:
        try:
            requests.get(f"{url}/healthz", timeout=LIMIT)
        except requests.ConnectionError:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        else:
            return


@contextmanager
def _run(command: list[str], url: str, **environ: str) -> Iterator[str]:
    process = subprocess.Popen(command, env={**os.environ, **environ})
    try:
        _wait_for(url, process)
        yield url
    finally:
        process.terminate()
        process.wait(LIMIT)


@contextmanager
def _python_proxy(desk: Served, port: int, key: str, at: Path) -> Iterator[str]:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    environ = {"BULLPEN_KEY": key, "PROXY_PORT": str(port)}
    environ["BULLPEN_API_PORT"] = desk.url.rpartition(":")[2]
    with _run([sys.executable, "-c", code], f"http://127.0.0.1:{port}", **environ) as url:
        yield url


@contextmanager
def _nginx(desk: Served, port: int, key: str, at: Path) -> Iterator[str]:
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        pytest.skip("nginx is not installed")
    (server,) = re.findall(r"```nginx\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    server = server.replace(":3778", f":{port}").replace("http://127.0.0.1:3777", desk.url)
    server = server.replace("bp_YOUR_KEY", key)
    paths = "".join(
        f"{each}_temp_path {at}/{each};\n"
        for each in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    text = f"""
daemon off; master_process off; pid {at}/pid; error_log stderr;
events {{}}
http {{ access_log off;
{paths}
{server}
}}
"""
    (at / "nginx.conf").write_text(text)
    command = [program, "-p", str(at), "-e", "stderr", "-c", str(at / "nginx.conf")]
    with _run(command, f"http://127.0.0.1:{port}") as url:
        yield url


@pytest.fixture(scope="module", params=[_python_proxy, _nginx])
def proxy(
    desk: Served, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A proxy as the documentation has it; it alone has a key."""
    at = tmp_path_factory.mktemp("proxy")
    with request.param(desk, free_port(), desk.key(Scope.ADMIN), at) as url:
        yield url


@pytest.fixture
def ask(proxy: str) -> Ask:
    """Asks as TinyOffice's pages do: without a token, always as JSON."""

    def one(method: str, path: str, body: object = None) -> requests.Response:
        data = None if body is None else json.dumps(body)
        headers = {"Content-Type": "application/json", "Origin": OFFICE}
        return requests.request(method, proxy + path, data=data, headers=headers, timeout=LIMIT)

    return one


def test_each_call_of_tinyoffice_gets_what_it_declares(ask: Ask, subtests: pytest.Subtests) -> None:
    for method, path, body, shape in CALLS:
        with subtests.test(call=f"{method} {path}"):
            response = ask(method, path, body)
            assert response.status_code == 200, response.text
            assert response.headers["Access-Control-Allow-Origin"] == OFFICE
            assert faults(response.json(), shape) == []


def test_what_tinyagi_lists_newest_first_is_listed_so(ask: Ask) -> None:
    for text in ("one", "two"):
        ask("POST", "/api/chatroom/dev", {"message": text})
    posts = ask("GET", "/api/chatroom/dev?limit=2&since=0").json()
    assert [each["message"] for each in posts] == ["two", "one"]
    rows = ask("GET", "/api/agents/coder/messages?limit=200&since_id=0").json()
    assert [each["id"] for each in rows] == sorted((each["id"] for each in rows), reverse=True)


def test_an_error_is_a_text_and_what_does_not_exist_is_not_found(
    ask: Ask, subtests: pytest.Subtests
) -> None:
    for method, path in MISSING:
        with subtests.test(path=path):
            response = ask(method, path)
            assert response.status_code in (404, 409), response.text
            assert isinstance(response.json()["error"], str)
    response = ask("PUT", "/api/agents/coder", {"provider": "nonsense"})
    assert (response.status_code, type(response.json()["error"])) == (400, str)


def test_a_page_of_another_site_gets_nothing_through_the_proxy(proxy: str) -> None:
    foreign = {"Origin": "http://evil.example", "Content-Type": "application/json"}
    assert requests.get(f"{proxy}/api/agents", headers=foreign, timeout=LIMIT).status_code == 403
    rebound = {"Host": "evil.example"}
    assert requests.get(f"{proxy}/api/agents", headers=rebound, timeout=LIMIT).status_code >= 400


def test_a_bot_sends_waits_for_its_event_takes_the_answer_and_acknowledges_it(
    proxy: str, ask: Ask, inside: Store
) -> None:
    with requests.get(f"{proxy}/api/events/stream", stream=True, timeout=LIMIT) as stream:
        lines = stream.iter_lines(chunk_size=1, decode_unicode=True)
        assert next(line for line in lines if line.startswith("event: ")) == "event: connected"
        mine = f"telegram_{time.monotonic_ns()}"
        said = {"channel": "telegram", "sender": "Ada", "senderId": "7", "message": "@bot hello"}
        ask("POST", "/api/message", {**said, "messageId": mine})
        answer(inside, "bot", "hello Ada")
        seen: dict[str, Any] = {}
        name = ""
        deadline = time.monotonic() + LIMIT
        for line in lines:
            assert time.monotonic() < deadline, seen
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: ") and name in EVENTS:
                found = json.loads(line.removeprefix("data: "))
                if found["messageId"] == mine:
                    seen[name] = found
                    assert faults(found, EVENTS[name]) == []
                    if name == "message:done":
                        break
    assert list(seen) == list(EVENTS)
    assert seen["message:incoming"]["message"] == "@bot hello"
    rows = ask("GET", "/api/responses/pending?channel=telegram").json()
    assert faults(rows, [PENDING]) == []
    (row,) = (each for each in rows if each["messageId"] == mine)
    assert (row["message"], row["senderId"]) == ("hello Ada", "7")
    assert faults(ask("POST", f"/api/responses/{row['id']}/ack").json(), OK) == []
    rows = ask("GET", "/api/responses/pending?channel=telegram").json()
    assert mine not in [each["messageId"] for each in rows]
