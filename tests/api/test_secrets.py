"""Secrets that are planted wherever one can be are in no answer and in no log."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from urllib.parse import quote

import pytest
import requests
from sqlalchemy.engine import make_url

from bullpen.core.access.keys import Scope
from bullpen.core.company import add_agent
from bullpen.core.roster.agents import Agent
from bullpen.core.roster.providers import CustomProvider, Harness, add_custom_provider
from bullpen.core.roster.teams import Team, add_team
from bullpen.core.settings import Settings
from bullpen.core.store.open import open_store
from bullpen.core.text import HIDDEN, MASK
from tests.api.served import Served, serving
from tests.stores import Stores

FILE = {name: f"planted-{name}-7c1d" for name in ("anthropic_api_key", "anthropic_oauth_token")}
ENVIRONMENT = "planted-openai-env-93fb"
PROVIDER = "planted-provider-key-51aa"
ADDRESS = "planted-in-address-08e2"
PASSWORD = "planted:pass/word@4f6b"
LATER = "planted-later-77d0"
BASE_URL = f"http://127.0.0.1:1/v1?api_key={ADDRESS}"

NAMES = {"agent_id": "coder", "team_id": "dev", "provider_id": "planted"}
"""What stands for the parts of paths; anything else is called `nothing`."""

LONGEST = 4 << 20


@dataclass(frozen=True)
class Planted:
    """The running API, and all that it must not tell."""

    served: Served
    known: tuple[str, ...]
    """Those that are its own."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """Those, and what will be sent to it."""
        return (*self.known, LATER)

    def check(self, response: requests.Response) -> None:
        """No secret is in this answer."""
        told = f"{response.headers}\n{response.text}"
        for secret in self.secrets:
            assert secret not in told, (response.url, secret)


@pytest.fixture(
    scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]
)
def planted(request: pytest.FixtureRequest, stores: Stores) -> Iterator[Planted]:
    """A home full of secrets, served."""
    settings = stores.settings(request.param)
    passwords: tuple[str, ...] = ()
    if settings.database_url:
        url = make_url(settings.database_url).set(password=PASSWORD)
        settings = replace(settings, database_url=url.render_as_string(hide_password=False))
        passwords = (PASSWORD, quote(PASSWORD, safe=""))
    _write(settings)
    _fill(settings)
    with serving(settings, BULLPEN_OPENAI_API_KEY=ENVIRONMENT) as served:
        known = (
            *(*FILE.values(), ENVIRONMENT, PROVIDER, ADDRESS, *passwords),
            *(served.token, served.key(Scope.ADMIN), served.key(Scope.READ)),
        )
        logs = settings.home / "logs"
        logs.mkdir(exist_ok=True)
        told = "\n".join(f"somebody logged {secret} here" for secret in known)
        (logs / "processor.log").write_text(f"{told}\nthe last line\n")
        yield Planted(served, known)


@pytest.fixture(autouse=True)
def _planted_again(planted: Planted) -> None:
    """Whatever a test before has put in the place of what was planted."""
    _write(planted.served.settings)
    body = {"api_key": PROVIDER, "base_url": BASE_URL}
    planted.served.ok("PUT", "/api/custom-providers/planted", body)


def _write(settings: Settings) -> None:
    lines = [f"{name} = {json.dumps(secret)}" for name, secret in FILE.items()]
    (settings.home / "settings.toml").write_text("\n".join(lines))


def _fill(settings: Settings) -> None:
    store = open_store(settings)
    with store.write() as tx:
        add_custom_provider(
            tx,
            CustomProvider(
                id="planted",
                harness=Harness.CLAUDE,
                base_url=BASE_URL,
                api_key=PROVIDER,
            ),
        )
        add_agent(tx, Agent(id="assistant", provider="claude"))
        add_agent(tx, Agent(id="coder", provider="custom:planted"))
        add_team(tx, Team(id="dev", leader="coder", members=("coder",)))
    store.close()


def read_paths(served: Served) -> list[str]:
    """Everything that can be read, as the API's description has it."""
    document = served.get("/openapi/openapi.json")
    return [
        re.sub(r"\{(\w+)\}", lambda found: NAMES.get(found[1], "nothing"), path)
        for path, methods in sorted(document["paths"].items())
        if "get" in methods
    ]


def test_no_answer_to_a_question_has_a_secret(planted: Planted) -> None:
    asked = 0
    for path in read_paths(planted.served):
        with planted.served.ask("GET", path, stream=True, allow_redirects=False) as response:
            if "event-stream" in response.headers.get("Content-Type", ""):
                continue  # it does not end, and tells of no secret's place
            assert int(response.headers.get("Content-Length", 0)) < LONGEST
            planted.check(response)
            asked += response.status_code == 200
    assert asked >= 20


def test_what_is_there_is_seen_to_be_there(planted: Planted) -> None:
    found = planted.served.get("/api/settings")
    for name in (*FILE, "openai_api_key"):
        assert (found["settings"][name]["value"], found["settings"][name]["secret"]) == (MASK, True)
    assert found["models"]["anthropic"]["api_key"] == MASK
    assert found["models"]["openai"]["api_key"] == MASK
    assert found["custom_providers"]["planted"]["api_key"] == MASK
    url = found["settings"]["database_url"]["value"]
    assert (MASK in url) is (planted.served.settings.database_url != "")
    provider = planted.served.get("/api/custom-providers")["planted"]
    assert provider["api_key"] == MASK
    assert provider["base_url"] == f"http://127.0.0.1:1/v1?api_key={MASK}"


def test_a_log_is_shown_without_what_somebody_wrote_there(planted: Planted) -> None:
    response = planted.served.ask("GET", "/api/logs?service=processor&limit=1000")
    lines = response.json()["lines"]
    assert lines[-1] == "the last line"
    assert len(lines) == len(planted.known) + 1
    assert all(line == f"somebody logged {HIDDEN} here" for line in lines[:-1])


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/api/settings", {"settings": {"anthropic_api_key": LATER}}),
        ("PUT", "/api/settings", {"models": {"anthropic": {"oauth_token": LATER}}}),
        ("PUT", "/api/settings", {"settings": {"openai_api_key": LATER}}),
        ("PUT", "/api/settings", {"settings": {"anthropic_api_key": [LATER]}}),
        ("PUT", "/api/settings", {"settings": {"database_url": f"postgresql://u:{LATER}@h/d"}}),
        ("PUT", "/api/settings", {"settings": {"database_url": f"{LATER}"}, "unknown": LATER}),
        ("POST", "/api/setup", {"custom_providers": {"other": {"api_key": LATER}}}),
        ("PUT", "/api/custom-providers/planted", {"api_key": LATER}),
        ("PUT", "/api/custom-providers/planted", {"base_url": f"http://u:{LATER}@127.0.0.1/"}),
        ("PUT", "/api/custom-providers/planted", {"base_url": f"ftp://127.0.0.1/?key={LATER}"}),
        ("PUT", "/api/custom-providers/planted", {"base_url": f"http://[?token={LATER}"}),
        ("PUT", "/api/custom-providers/planted", {"api_key": {"secret": LATER}}),
        ("PUT", "/api/custom-providers/new", {"harness": "claude", "api_key": LATER}),
        ("PUT", "/api/custom-providers/..%2fx", {"harness": "claude", "api_key": LATER}),
    ],
    ids=str,
)
def test_what_is_sent_as_a_secret_is_not_sent_back(
    planted: Planted, method: str, path: str, body: object
) -> None:
    response = planted.served.ask(method, path, body)
    assert response.status_code < 500
    planted.check(response)


def test_a_wrong_token_is_not_sent_back(planted: Planted) -> None:
    for token in (LATER, f"bp_{LATER}"):
        response = planted.served.ask("GET", "/api/settings", token=token)
        assert response.status_code == 401
        planted.check(response)


def test_the_servers_own_log_has_none_of_them(planted: Planted) -> None:
    """All that was asked before has left its lines there, this at the least."""
    served = planted.served
    served.ask("GET", "/api/settings", token=LATER)
    served.ok("PUT", "/api/custom-providers/planted", {"api_key": LATER})
    served.ask("PUT", "/api/custom-providers/planted", {"base_url": f"ftp://h/?key={LATER}"})
    served.ok("PUT", "/api/settings", {"settings": {"anthropic_api_key": LATER}})
    log = planted.served.log.read_text()
    assert "/api/custom-providers/planted" in log
    for secret in planted.secrets:
        assert secret not in log, secret
