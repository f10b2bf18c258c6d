"""The whole description, tried with what it allows and what it does not, by every kind of key.

`make fuzz` tries FUZZ_EXAMPLES cases of each operation, chosen anew each time; here they are few
and always the same. Some of the values are an attacker's, and links and pipes lie about. Nothing
fails, no key sees what is out of its reach, and nothing raw comes to a terminal afterwards.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
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
from bullpen.core.access.keys import Scope
from tests.api.hostile import (
    FIELDS,
    OUT_OF_REACH,
    RAW_CONTROL,
    SECRETS,
    VALUES,
    Poison,
    plant_files,
    poison,
    poisons,
    within_field,
)
from tests.api.served import Served, serving
from tests.cli.command import Bullpen
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


SHOWING = (
    *("status", "queue status", "queue list", "queue dead", "queue held", "queue causes"),
    *("history list", "response list", "agent list", "key list", "room read dev", "team list"),
    *("schedule list", "provider list", "events", "logs api", "trace fuzz_1", "agent show coder"),
)
"""Commands that show what others wrote."""


@dataclass(frozen=True)
class Home:
    """An API of its own, and the keys of every scope and reach."""

    served: Served
    keys: dict[str, str]
    """The secret of each; the keys of one agent are named after it."""


@pytest.fixture(scope="module")
def home(stores: Stores) -> Iterator[Home]:
    """What is tried here is done, so it is nobody else's."""
    from bullpen.core.company import add_agent
    from bullpen.core.roster.agents import HTTP, Agent
    from bullpen.core.roster.teams import Team, add_team
    from bullpen.core.store.open import open_store

    fresh = stores.settings("sqlite")
    store = open_store(fresh)
    with store.write() as tx:
        for name in ("assistant", "coder"):
            add_agent(tx, Agent(id=name))
        add_agent(tx, Agent(id="worker", provider=HTTP, system_prompt=OUT_OF_REACH))
        add_team(tx, Team(id="dev", leader="coder", members=("coder", "worker")))
    store.close()
    with serving(fresh) as served:
        keys = {f"{scope}": served.key(scope) for scope in Scope}
        keys |= {f"coder {scope}": served.key(scope, agents=("coder",)) for scope in Scope}
        _furnish(served)
        yield Home(served, keys)
        assert "Traceback" not in served.log.read_text()
        _look_at_all_of_it(fresh.home)
    shutil.rmtree(fresh.home, ignore_errors=True)


def _furnish(served: Served) -> None:
    """Give `worker` what is nobody else's business, and put links to it about."""
    home, workspace = served.settings.home, served.settings.workspace
    served.post("/api/message", {"message": f"@worker {OUT_OF_REACH}", "sender": "Ann"})
    about = {"agent": "worker", "channel": "api", "sender": "Ann", "message": OUT_OF_REACH}
    served.post("/api/responses", about)
    (workspace / "worker").mkdir(mode=0o700, parents=True, exist_ok=True)
    (workspace / "worker" / "secret.md").write_text(OUT_OF_REACH)
    plant_files(home, workspace)


def _look_at_all_of_it(home: Path) -> None:
    bullpen = Bullpen(home)
    for command in SHOWING:
        shown = bullpen(*command.split())
        for text in (shown.out, shown.err):
            assert not RAW_CONTROL.search(text), (command, ascii(text))


@pytest.mark.slow
@pytest.mark.timeout(0 if EXAMPLES else 300)
@pytest.mark.parametrize("mode", GenerationMode, ids=lambda mode: mode.value)
@pytest.mark.parametrize("tag", TAGS)
def test_every_operation_answers_as_described(
    home: Home, tag: str, mode: GenerationMode, tmp_path: Path
) -> None:
    served = home.served
    served.ask("POST", "/api/message", {"message": "@coder hello", "messageId": "fuzz_1"})
    served.ask("POST", "/api/responses", {"channel": "api", "sender": "fuzz", "message": "hello"})
    schema = schemathesis.openapi.from_url(f"{served.url}/openapi/openapi.json")
    found = 0
    for result in schema.include(tag=tag).get_all_operations():
        assert isinstance(result, Ok), result
        operation = result.ok()
        found += 1
        # Once more for each: another operation may have removed it.
        served.ask("POST", "/api/schedules", SCHEDULE)

        @settings(
            max_examples=EXAMPLES or BOUNDED,
            deadline=None,
            derandomize=not EXAMPLES,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(
            case=operation.as_strategy(generation_mode=mode),
            real=st.booleans(),
            chosen=poisons,
            key=st.sampled_from(sorted(home.keys)),
        )
        def answers(case: AnyCase, real: bool, chosen: Poison, key: str) -> None:
            poison(case, chosen)
            _within_bounds(case, real)
            for token in (served.token, "", home.keys[key]):
                content = _try(served, case, token)
                if token == home.keys[key] and key.startswith("coder"):
                    assert not any(each in content for each in SECRETS), (key, case.path)

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


def _try(served: Served, case: AnyCase, token: str) -> bytes:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        response = case.call(headers=headers, timeout=60, allow_redirects=False)
    except (requests.exceptions.InvalidHeader, UnicodeEncodeError, ValueError):
        return b""  # no client can send it
    case.validate_response(response, checks=CHECKS)
    if not token and response.status_code == 200:
        assert not case.operation.definition.raw.get("security"), case.path
    assert served.token.encode() not in response.content
    return bytes(response.content)


def test_what_an_attacker_plants_breaks_no_list_and_shows_no_key_more(
    home: Home, subtests: pytest.Subtests
) -> None:
    """Each value in each field, then every list and page by the owner and by every key."""
    served = home.served
    about = {"agent": "coder", "channel": "api", "sender": "Eve", "message": "hello"}
    for field, value in itertools.product(FIELDS, VALUES):
        planted = {field: within_field(field, value)}
        for path, body in (
            ("/api/message", {**about, **planted}),
            ("/api/responses", {**about, **planted}),
        ):
            response = served.ask("POST", path, body)
            assert response.status_code < 500, (path, field, ascii(value)[:100], response.text)
    paths = [path for path in describe()["paths"] if "get" in describe()["paths"][path]]
    for path in paths:
        known = re.sub(r"\{(\w+)\}", lambda found: KNOWN.get(found[1], "1"), path)
        if path == "/api/events/stream":
            known += "?follow=false"
        with subtests.test(path=known):
            for name, token in {"owner": served.token, **home.keys}.items():
                response = served.ask("GET", known, token=token)
                assert response.status_code < 500, (name, response.text)
                assert served.token.encode() not in response.content, name
                if name.startswith("coder"):
                    assert not any(each in response.content for each in SECRETS), name
