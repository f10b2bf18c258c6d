"""The whole description, tried with what it allows and what it does not, with a key and without.

`make fuzz` tries FUZZ_EXAMPLES cases of each operation, chosen anew each time; here they are few
and always the same.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    allow_header_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from bullpen.api.description import describe
from tests.api.served import Served, serving
from tests.stores import Stores

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "0"))
BOUNDED = 12
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    allow_header_conformance,
]

KNOWN = {
    "agent_id": "coder",
    "agent": "worker",
    "team_id": "dev",
    "teamId": "dev",
    "message_id": "fuzz_1",
    "id": "1",
    "conversation_id": "fuzz_1",
    "provider_id": "fuzz",
    "name": "notes.txt",
    "response_id": "1",
    "number": "0",
    "schedule": "fuzz",
}
"""What exists, for the places in paths: what was only made up would all be 404."""

SCHEDULE = {"agentId": "coder", "message": "hello", "cron": "@daily", "label": "fuzz"}

AnyCase = Case[Any]

TAGS = [tag["name"] for tag in describe()["tags"]]


@pytest.fixture(scope="module")
def home(stores: Stores) -> Iterator[Served]:
    """An API of its own: what is tried here is done."""
    from bullpen.core.company import add_agent
    from bullpen.core.roster.agents import HTTP, Agent
    from bullpen.core.roster.teams import Team, add_team
    from bullpen.core.store.open import open_store

    fresh = stores.settings("sqlite")
    store = open_store(fresh)
    with store.write() as tx:
        for name in ("assistant", "coder"):
            add_agent(tx, Agent(id=name))
        add_agent(tx, Agent(id="worker", provider=HTTP))
        add_team(tx, Team(id="dev", leader="coder", members=("coder", "worker")))
    store.close()
    with serving(fresh) as served:
        yield served
        assert "Traceback" not in served.log.read_text()
    shutil.rmtree(fresh.home, ignore_errors=True)


@pytest.mark.slow
@pytest.mark.timeout(0 if EXAMPLES else 300)
@pytest.mark.parametrize("mode", GenerationMode, ids=lambda mode: mode.value)
@pytest.mark.parametrize("tag", TAGS)
def test_every_operation_answers_as_described(
    home: Served, tag: str, mode: GenerationMode, tmp_path: Path
) -> None:
    home.ask("POST", "/api/message", {"message": "@coder hello", "messageId": "fuzz_1"})
    home.ask("POST", "/api/responses", {"channel": "api", "sender": "fuzz", "message": "hello"})
    schema = schemathesis.openapi.from_url(f"{home.url}/openapi/openapi.json")
    found = 0
    for result in schema.include(tag=tag).get_all_operations():
        assert isinstance(result, Ok), result
        operation = result.ok()
        found += 1
        # Once more for each: another operation may have removed it.
        home.ask("POST", "/api/schedules", SCHEDULE)

        @settings(
            max_examples=EXAMPLES or BOUNDED,
            deadline=None,
            derandomize=not EXAMPLES,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode), real=st.booleans())
        def answers(case: AnyCase, real: bool) -> None:
            _within_bounds(case, real)
            for token in (home.token, ""):
                _try(home, case, token)

        try:
            answers()
        except Unsatisfiable:
            # There is nothing to get wrong in a request without parameters.
            assert mode is GenerationMode.NEGATIVE
    assert found, tag


def _within_bounds(case: AnyCase, real: bool) -> None:
    """Nothing waits for long, and half of the paths lead to something that exists."""
    if isinstance(case.body, dict) and isinstance(case.body.get("wait"), (int, float)):
        case.body["wait"] = 0
    if case.path == "/api/events/stream":
        case.query = {**(case.query or {}), "follow": "false"}
    if real:
        for name in case.path_parameters or {}:
            case.path_parameters[name] = KNOWN.get(name, case.path_parameters[name])


def _try(served: Served, case: AnyCase, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        response = case.call(headers=headers, timeout=60, allow_redirects=False)
    except (requests.exceptions.InvalidHeader, UnicodeEncodeError):
        return  # no client can send it
    case.validate_response(response, checks=CHECKS)
    if not token and response.status_code == 200:
        assert not case.operation.definition.raw.get("security"), case.path
    assert served.token.encode() not in response.content
