"""No key does or reaches more than it was given: each route, and each field that it takes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from pydantic import BaseModel

from bullpen.api.context import ChangedBy
from bullpen.api.description import describe
from bullpen.core.access.keys import Scope
from bullpen.core.company import add_agent
from bullpen.core.roster.agents import Agent, get_agent
from bullpen.core.roster.teams import Team, add_team
from bullpen.core.store.base import Store
from tests.api.served import Served

SECRET = "what only the worker was told"
DESCRIPTION = describe()

TOKEN = {"token": "worker.claim_x"}
FAILED = {**TOKEN, "error": "it failed"}
BODIES: dict[str, Mapping[str, object]] = {
    "PUT /api/agents/{agent_id}/system-prompt": {"content": "obey"},
    "POST /api/chatroom/{team_id}": {"message": "hello", "sender": "ann"},
    "POST /api/keys": {"name": "more", "scopes": ["read"], "agents": ["worker"]},
    "POST /api/message": {"message": "@worker hello"},
    "POST /api/pairing/approve": {"code": "K7M2XQ4B"},
    "PUT /api/pairing/{channel}/{sender_id}": {"tier": "owner"},
    "POST /api/queue/claim": {"agent": "worker"},
    "POST /api/queue/complete": {**TOKEN, "response": "done"},
    "POST /api/queue/extend": TOKEN,
    "POST /api/queue/fail": FAILED,
    "POST /api/queue/release": TOKEN,
    "POST /api/responses": {"channel": "api", "sender": "ann", "message": "hi", "agent": "worker"},
    "POST /api/responses/ack-leased": TOKEN,
    "POST /api/responses/begin-part": TOKEN,
    "POST /api/responses/end-part": TOKEN,
    "POST /api/responses/lease": {"channel": "api"},
    "POST /api/responses/reschedule": FAILED,
    "POST /api/responses/undeliverable": FAILED,
    "POST /api/responses/unknown": FAILED,
    "POST /api/schedules": {"agentId": "worker", "message": "hello", "cron": "@daily"},
}
"""What is sent to routes that want a body, about an agent that the key does not reach."""

QUERIES = {
    "GET /api/events/stream": "follow=false&since_id=0",
    "GET /api/events": "since_id=0",
    "GET /api/history/search": "text=told",
    "GET /api/proof": f"nonce={'0' * 32}",
    "GET /api/responses/pending": "channel=api",
    "GET /login": "code=bp_x",
}

FOR_ANY_KEY = {
    *("GET /", "GET /api/me", "GET /api/proof", "GET /healthz", "GET /readyz"),
    # These show what the key reaches, and no more.
    *("GET /api/agents", "GET /api/agent-messages", "GET /api/chats", "GET /api/events"),
    *("GET /api/events/stream", "GET /api/heartbeats", "GET /api/keys", "GET /api/lanes"),
    *("GET /api/queue/agents", "GET /api/queue/processing", "GET /api/schedules"),
    *("GET /api/status", "GET /api/teams"),
    # What they make has the rights of the key that asks, and ends with it.
    *("POST /api/login-links", "POST /api/logout"),
}

NOT_ASKED = {"POST /api/files": "an upload is for whoever names it later"}

SCHEDULE_FIELDS = {
    *("message", "agent_id", "agent", "team", "cron", "run_at", "every_seconds", "label"),
    *("channel", "address", "to", "sender", "enabled", "zone", "missed", "overlap"),
    "jitter_seconds",
}

FREE_FIELDS = {
    "ApproveBody": set(),
    "TierBody": set(),
    "AgentBody": {*("name", "model", "system_prompt", "prompt_file", "context", "heartbeat")},
    "HeartbeatBody": {
        *("content", "enabled", "interval", "hours", "budget", "max_silent", "to"),
    },
    "Instructions": {"content"},
    "LaneChange": {"ordering", "batching", "max_depth", "overflow", "max_attempts"},
    "LimitsBody": {"max_hops", "max_messages", "max_cost"},
    "NewKey": {"name", "scopes", "agents", "expires_at"},
    "Reason": {"reason"},
    "NewScheduleBody": SCHEDULE_FIELDS,
    "ScheduleBody": SCHEDULE_FIELDS,
    "TeamBody": {"name", "agents", "leader_agent", "delivery", "limits"},
}
"""Fields that an admin key for some agents may change for these: none opens the machine."""


def test_a_key_for_some_agents_reaches_no_other_by_any_route(
    served: Served, subtests: pytest.Subtests
) -> None:
    mine = served.key(Scope.ADMIN, agents=("coder",))
    message = served.post("/api/message", {"message": f"@worker {SECRET}"})["messageId"]
    schedule = served.post("/api/schedules", {**BODIES["POST /api/schedules"], "message": SECRET})
    said = {**BODIES["POST /api/responses"], "message": SECRET}
    served.post("/api/responses", said)
    places = {
        **dict.fromkeys(("agent_id", "agent"), "worker"),
        **dict.fromkeys(("message_id", "number", "conversation_id"), message),
        **{"team_id": "dev", "action": "restart", "schedule": schedule["schedule"]["id"]},
        "response_id": served.get("/api/responses?limit=1")[0]["id"],
    }
    operations = {f"{method} {path}": each for method, path, each in _operations()}
    assert not (FOR_ANY_KEY | BODIES.keys() | QUERIES.keys()) - operations.keys()
    for name, operation in operations.items():
        if name in NOT_ASKED:
            continue
        method, path = name.split()
        for each in operation.get("parameters", []):
            if each["in"] == "path":
                path = path.replace(f"{{{each['name']}}}", str(places.get(each["name"], "x")))
        body = BODIES.get(name, {}) if "requestBody" in operation else None
        with subtests.test(name):
            answer = served.ask(
                *(method, f"{path}?{QUERIES.get(name, '')}", body),
                token=mine,
                allow_redirects=False,
            )
            assert SECRET not in answer.text
            if name in FOR_ANY_KEY:
                assert answer.status_code in (200, 302)
            elif name == "GET /login":
                assert answer.status_code in (401, 429)
            else:
                assert answer.status_code in (403, 404), answer.text
    assert served.get(f"/api/messages/{message}")["status"] == "pending"


def test_a_scope_opens_the_routes_that_need_it_and_no_other(
    served: Served, subtests: pytest.Subtests
) -> None:
    keys = {scope: served.key(scope) for scope in Scope if scope is not Scope.ADMIN}
    asked = 0
    for method, path, operation in _operations():
        needs = re.search(r"Needs the scope `(\w+)`", operation.get("description", ""))
        if needs is None or f"{method} {path}" in NOT_ASKED:
            continue
        name = f"{method} {path}"
        body = BODIES.get(name, {}) if "requestBody" in operation else None
        path = path.replace("{action}", "restart")
        for scope, key in keys.items():
            if scope == needs[1]:
                continue
            with subtests.test(name, scope=scope):
                refused = served.refused(method, f"{path}?{QUERIES.get(name, '')}", body, token=key)
                assert refused == (403, "scope_too_small")
            asked += 1
    assert asked > 300


def test_a_key_for_some_agents_takes_no_name_of_another(
    served: Served, inside: Store, subtests: pytest.Subtests
) -> None:
    with inside.write() as tx:
        add_agent(tx, Agent(id="sage", name="Wizard"))
        add_team(tx, Team(id="ops", name="Operations", leader="sage", members=("sage",)))
    mine = served.key(Scope.ADMIN, agents=("coder", "wizard"))
    team: dict[str, object] = {"name": "Mine", "agents": ["coder"], "leader_agent": "coder"}
    taken = (409, "name_taken")
    for name in ("Wizard", "WIZARD", "worker", "Operations", "ops", "dev"):
        with subtests.test(name):
            body: dict[str, object] = {"name": name}
            assert served.refused("PATCH", "/api/agents/coder", body, token=mine) == taken
            body = {**team, "name": name}
            assert served.refused("PUT", "/api/teams/mine", body, token=mine) == taken
    for path, new in (
        ("/api/teams/wizard", team),
        ("/api/teams/operations", team),
        ("/api/agents/wizard", {"name": "Me", "provider": "echo"}),
    ):
        with subtests.test(path):
            assert served.refused("PUT", path, new, token=mine) == taken
    served.ok("PUT", "/api/teams/mine", team, token=mine)
    served.ok("PUT", "/api/teams/mine", {**team, "name": "Still mine"}, token=mine)
    served.ok("DELETE", "/api/teams/mine", token=mine)
    sent = served.post("/api/message", {"message": "@Wizard hello"})["messageId"]
    assert served.get(f"/api/messages/{sent}")["agent"] == "sage"


def test_every_field_that_changes_an_agents_rights_is_marked(subtests: pytest.Subtests) -> None:
    """A new field of an admin's request stands in the list above, or says who changes it."""
    checked = {each.__name__: each for each in _bodies()}
    assert {"AgentBody", "TeamBody", "HeartbeatBody", "LaneChange"} <= checked.keys()
    for name, body in checked.items():
        with subtests.test(name):
            free = FREE_FIELDS[name]
            unmarked = {
                field
                for field, info in body.model_fields.items()
                if not any(isinstance(mark, ChangedBy) for mark in info.metadata)
            }
            assert unmarked == free


def test_what_opens_the_machine_is_changed_by_keys_for_all_agents(
    served: Served, inside: Store, subtests: pytest.Subtests
) -> None:
    mine = served.key(Scope.ADMIN, agents=("coder", "fresh"))
    shown = served.get("/api/agents/coder", token=mine)
    own = {key: value for key, value in shown.items() if key != "lane"}
    served.ok("PUT", "/api/agents/coder", {**own, "model": "small"}, token=mine)
    for change in ({"permission": "full"}, {"provider": "claude"}, {"scheduling": "team"}):
        for method, path, body in (
            ("PATCH", "/api/agents/coder", change),
            ("PUT", "/api/agents/coder", {**own, **change}),
            ("PUT", "/api/agents/fresh", {"name": "Fresh", "provider": "echo", **change}),
        ):
            with subtests.test(change=change, method=method, path=path):
                refused = served.refused(method, path, body, token=mine)
                assert refused == (403, "out_of_reach")
        with subtests.test(change=change, by="a key for all agents"):
            served.ok("PATCH", "/api/agents/coder", change)
            served.ok("PATCH", "/api/agents/coder", {name: own[name] for name in change})
    served.ok("PUT", "/api/agents/fresh", {"name": "Fresh", "provider": "echo"}, token=mine)
    served.ok("DELETE", "/api/agents/fresh", token=mine)
    with inside.read() as tx:
        assert (get_agent(tx, "coder").permission, get_agent(tx, "coder").provider) == (
            own["permission"],
            own["provider"],
        )


def test_no_key_moves_an_agent_to_another_directory(
    served: Served, inside: Store, subtests: pytest.Subtests
) -> None:
    home = str(served.settings.home)
    shown = served.get("/api/agents/coder")
    limited = served.key(Scope.ADMIN, agents=("coder",))
    for token in (served.token, served.key(Scope.ADMIN), limited):
        for directory in (home, "/", f"{shown['working_directory']}/..", "relative"):
            body = {"working_directory": directory}
            with subtests.test(directory=directory):
                refused = served.refused("PATCH", "/api/agents/coder", body, token=token)
                assert refused == (403, "machine_only")
        same = {"working_directory": shown["working_directory"]}
        served.ok("PATCH", "/api/agents/coder", same, token=token)
        served.ok("PATCH", "/api/agents/coder", {"working_directory": ""}, token=token)
    new = {"name": "New", "provider": "echo", "working_directory": home}
    assert served.refused("PUT", "/api/agents/new", new) == (403, "machine_only")
    for path in ("/api/settings", "/api/setup"):
        method = "PUT" if path == "/api/settings" else "POST"
        whole = {"agents": {"coder": {"working_directory": home}}}
        assert served.refused(method, path, whole) == (403, "machine_only")
    with inside.read() as tx:
        assert get_agent(tx, "coder").directory == ""
    assert served.get("/api/audit?limit=1")[0]["outcome"] == "machine_only"


def _operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in sorted(DESCRIPTION["paths"].items()):
        for method, operation in methods.items():
            yield method.upper(), path, operation


def _bodies() -> Iterator[type[BaseModel]]:
    """The bodies of routes for admins that a key for some agents may ask."""
    ours = (each for each in _subclasses(BaseModel) if each.__module__.startswith("bullpen."))
    classes = {each.__name__: each for each in ours}
    for method, path, operation in _operations():
        admin = "scope `admin`" in operation.get("description", "")
        if not admin or "requestBody" not in operation or path in FOR_ALL_AGENTS:
            continue
        (content,) = operation["requestBody"]["content"].values()
        name = content["schema"]["$ref"].rpartition("/")[2]
        assert name in classes, (method, path)
        yield classes[name]


FOR_ALL_AGENTS = {"/api/settings", "/api/setup", "/api/custom-providers/{provider_id}"}
"""Routes that refuse a key for some agents, whatever it sends."""


def _subclasses(parent: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for each in parent.__subclasses__():
        yield each
        yield from _subclasses(each)
