"""The description: complete, valid, and served with a page that needs nothing from elsewhere."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from pydantic import BaseModel

from bullpen.api.routes import ROUTES
from bullpen.core.access.keys import Scope
from tests.api.served import Served

PUBLIC = {"/", "/assets/{checksum}/{name}", "/healthz", "/readyz", "/login", "/api/proof"}
REFERENCE = """
POST /api/message
GET /api/responses
GET /api/responses/pending
POST /api/responses
POST /api/responses/{}/ack
GET /api/queue/status
GET /api/queue/agents
GET /api/queue/processing
POST /api/queue/processing/{}/kill
GET /api/queue/dead
POST /api/queue/dead/{}/retry
DELETE /api/queue/dead/{}
GET /api/agents
PUT /api/agents/{}
DELETE /api/agents/{}
GET /api/agents/{}/skills
GET /api/agents/{}/system-prompt
PUT /api/agents/{}/system-prompt
GET /api/agents/{}/memory
GET /api/agents/{}/messages
GET /api/agent-messages
GET /api/custom-providers
PUT /api/custom-providers/{}
DELETE /api/custom-providers/{}
GET /api/teams
PUT /api/teams/{}
DELETE /api/teams/{}
GET /api/agents/{}/heartbeat
PUT /api/agents/{}/heartbeat
GET /api/schedules
POST /api/schedules
PUT /api/schedules/{}
DELETE /api/schedules/{}
GET /api/settings
PUT /api/settings
POST /api/setup
GET /api/chatroom/{}
POST /api/chatroom/{}
GET /api/chats
GET /api/logs
POST /api/services/apply
POST /api/services/channel/{}/{}
POST /api/services/restart
GET /api/status
GET /api/events/stream
GET /api/system-agents
POST /api/queue/claim
POST /api/queue/extend
POST /api/queue/complete
POST /api/queue/fail
POST /api/queue/release
GET /api/conversations/{}
GET /metrics
"""


def _operations(served: Served) -> dict[str, dict[str, object]]:
    document = served.get("/openapi/openapi.json", token="")
    return {
        f"{method.upper()} {path}": operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }


def test_every_route_that_clients_of_the_reference_know_is_there(served: Served) -> None:
    there = {re.sub(r"{\w+}", "{}", each) for each in _operations(served)}
    assert set(REFERENCE.split("\n")) - {""} - there == set()


def test_every_operation_says_what_it_is_for_and_what_it_needs(served: Served) -> None:
    scopes = {scope.value for scope in Scope}
    for name, operation in _operations(served).items():
        assert operation["summary"], name
        assert operation["tags"], name
        path = name.split()[1]
        assert (not operation.get("security")) == (path in PUBLIC), name
        needs = re.search(r"Needs the scope `(\w+)`", str(operation.get("description", "")))
        if needs:
            assert needs[1] in scopes
        else:
            assert path in PUBLIC | {"/api/me", "/api/logout"}, name


def test_it_is_of_openapi_3_1_and_names_no_schema_that_is_not_there(served: Served) -> None:
    response = served.ask("GET", "/openapi/openapi.json", token="")
    document = response.json()
    assert document["openapi"].startswith("3.1")
    assert document["info"]["title"] == "Bullpen"
    named = set(re.findall(r'"#/components/schemas/([^"]+)"', response.text))
    assert named <= set(document["components"]["schemas"])
    assert set(document["components"]["securitySchemes"]) == {"token", "cookie"}


def test_no_schema_has_the_name_of_another(served: Served) -> None:
    document = served.get("/openapi/openapi.json", token="")
    assert ROUTES  # all models are known by now
    schemas: dict[str, set[str]] = {}
    for model in _models(BaseModel):
        whole = model.model_json_schema(ref_template="{model}")
        parts = whole.pop("$defs", {})
        for name, part in {**parts, model.__name__: whole}.items():
            schemas.setdefault(name, set()).add(json.dumps(part, sort_keys=True))
    described = schemas.keys() & document["components"]["schemas"].keys()
    assert len(described) > 50
    assert [name for name in sorted(described) if len(schemas[name]) > 1] == []


def _models(parent: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for model in parent.__subclasses__():
        if model.__module__.startswith("bullpen.api."):
            yield model
        yield from _models(model)


def test_the_page_to_try_it_asks_nobody_else(served: Served) -> None:
    page = served.ask("GET", "/openapi/swagger", token="")
    assert page.status_code == 200
    found = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert len(found) >= 3
    for each in found:
        assert "//" not in each, each
        assert served.ask("GET", f"/openapi/{each}", token="").status_code == 200, each
    assert "connect-src 'self'" in page.headers["Content-Security-Policy"]


def test_an_unknown_route_and_a_wrong_method_are_told_in_the_one_shape(served: Served) -> None:
    assert served.refused("GET", "/api/nothing") == (404, "not_found")
    response = served.ask("PATCH", "/api/message", {})
    assert (response.status_code, response.json()["code"]) == (405, "bad_request")
    assert "POST" in response.headers["Allow"]
