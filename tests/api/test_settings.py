"""Settings over the API: shown without secrets, merged, and refused where they open the machine."""

from __future__ import annotations

import stat
import threading
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bullpen.core.access.keys import Scope
from bullpen.core.company import add_agent
from bullpen.core.roster.agents import Agent
from bullpen.core.store.open import open_store
from bullpen.core.text import MASK
from tests.api.served import Served, serving
from tests.stores import Stores

SECRET = "sk-planted-in-the-file"
TEXT = f"""# why it is so
max_hops = 5  # not more
anthropic_api_key = "{SECRET}"

[not_ours]
kept = true
"""


@pytest.fixture(scope="module")
def desk(stores: Stores) -> Iterator[Served]:
    """An API whose environment says one setting."""
    settings = stores.settings("sqlite")
    store = open_store(settings)
    with store.write() as tx:
        add_agent(tx, Agent(id="assistant", provider="claude", model="sonnet"))
    store.close()
    with serving(settings, BULLPEN_MAX_RUNS="3") as running:
        yield running


@pytest.fixture(autouse=True)
def file(desk: Served) -> Path:
    """The file, as it was before each test."""
    path: Path = desk.settings.home / "settings.toml"
    path.write_text(TEXT)
    return path


def put(desk: Served, **settings: object) -> Any:  # noqa: ANN401 - whatever it gives
    """What PUT gives for settings of our own."""
    return desk.ok("PUT", "/api/settings", {"settings": settings})


def refused(desk: Served, **settings: object) -> tuple[int, str]:
    """How PUT refuses settings of our own."""
    return desk.refused("PUT", "/api/settings", {"settings": settings})


def test_each_setting_says_its_value_and_where_it_comes_from(desk: Served) -> None:
    found = desk.get("/api/settings")["settings"]
    hops = found["max_hops"]
    assert (hops["value"], hops["default"], hops["source"]) == (5, 8, "file")
    assert (found["max_runs"]["value"], found["max_runs"]["source"]) == (3, "environment")
    assert found["max_cost"]["source"] == "default"
    assert found["max_hops"]["doc"]
    assert (found["anthropic_api_key"]["value"], found["anthropic_api_key"]["secret"]) == (
        MASK,
        True,
    )
    assert found["openai_api_key"]["value"] == ""


def test_a_change_is_in_the_file_and_all_else_stays_there(desk: Served, file: Path) -> None:
    done = put(desk, max_hops=7, owner_id="U1", max_cost=1.5)
    assert done["settings"]["settings"]["max_hops"]["value"] == 7
    assert done["restart"] == ["api", "guard", "processor", "scheduler"]
    text = file.read_text()
    assert "# why it is so" in text
    assert "# not more" in text
    found = tomllib.loads(text)
    assert found["not_ours"] == {"kept": True}
    assert (found["max_hops"], found["owner_id"], found["max_cost"]) == (7, "U1", 1.5)
    assert found["anthropic_api_key"] == SECRET


def test_the_file_and_the_one_before_are_their_owners_alone(desk: Served, file: Path) -> None:
    file.chmod(0o644)
    put(desk, max_hops=6)
    before = file.with_name("settings.toml.bak")
    assert before.read_text() == TEXT
    for path in (file, before):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_null_takes_a_setting_back_to_its_default(desk: Served, file: Path) -> None:
    done = put(desk, max_hops=None)
    assert "max_hops" not in tomllib.loads(file.read_text())
    assert done["settings"]["settings"]["max_hops"]["value"] == 8


def test_who_must_restart_is_told(desk: Served) -> None:
    assert put(desk, body_bytes=2048)["restart"] == ["api"]
    assert put(desk, idle_seconds=5)["restart"] == ["processor"]
    assert put(desk)["restart"] == []


def test_all_that_is_shown_can_be_sent_back_and_changes_nothing(desk: Served, file: Path) -> None:
    shown = desk.get("/api/settings")
    done = desk.ok("PUT", "/api/settings", shown)
    assert done == {"ok": True, "settings": shown, "restart": []}
    assert file.read_text() == TEXT


def test_what_is_bad_in_the_file_is_shown_without_its_secret(desk: Served, file: Path) -> None:
    (unknown,) = desk.get("/api/settings")["problems"]
    assert (unknown["name"], unknown["warning"]) == ("not_ours", True)
    file.write_text('max_hops = "many"\nanthropic_api_key = ["sk-7123"]\n')
    shown = desk.get("/api/settings")
    bad = [(each["line"], each["name"], each["warning"]) for each in shown["problems"]]
    assert bad == [(1, "max_hops", False), (2, "anthropic_api_key", False)]
    assert all(each["text"] and each["hint"] for each in shown["problems"])
    assert "sk-7123" not in str(shown)
    assert desk.ok("PUT", "/api/settings", shown)["settings"] == shown


def test_a_secret_is_set_and_not_shown_and_its_mask_changes_nothing(
    desk: Served, file: Path
) -> None:
    body = {"models": {"openai": {"api_key": "sk-new"}, "anthropic": {"api_key": MASK}}}
    done = desk.ask("PUT", "/api/settings", body)
    assert done.status_code == 200
    assert "sk-new" not in done.text
    assert done.json()["settings"]["models"]["openai"]["api_key"] == MASK
    put(desk, openai_api_key=MASK, anthropic_oauth_token=MASK)
    found = tomllib.loads(file.read_text())
    assert (found["openai_api_key"], found["anthropic_api_key"]) == ("sk-new", SECRET)
    assert "anthropic_oauth_token" not in found
    put(desk, openai_api_key="")
    assert desk.get("/api/settings")["settings"]["openai_api_key"]["value"] == ""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("home", "/tmp/elsewhere"),
        ("workspace", "/"),
        ("database_url", "sqlite:////tmp/x.db"),
        ("api_host", "0.0.0.0"),
        ("api_port", 4000),
        ("api_names", "evil.example"),
        ("api_origins", "http://evil.example"),
        ("public_url", "https://evil.example"),
        ("pass_environment", "*"),
        ("sandbox_user", "root"),
        ("max_runs", 9),
    ],
)
def test_what_opens_the_machine_or_the_environment_says_is_fixed(
    desk: Served, file: Path, name: str, value: object
) -> None:
    response = desk.ask("PUT", "/api/settings", {"settings": {name: value, "max_hops": 2}})
    assert (response.status_code, response.json()["code"]) == (400, "setting_fixed")
    assert name in response.json()["error"]
    assert file.read_text() == TEXT
    assert desk.get("/api/settings")["settings"][name]["fixed"]


@pytest.mark.parametrize(
    "settings",
    [
        {"nonsense": 1},
        {"max_hops": -1},
        {"max_hops": "many"},
        {"max_hops": True},
        {"max_hops": 1 << 70},
        {"max_hops": 10**400},
        {"max_cost": float("inf")},
        {"max_cost": float("nan")},
        {"owner_id": 5},
        {"owner_id": "a\x00b"},
        {"owner_id": "\ud800"},
        {"owner_id": "x" * 5000},
        {"log_format": "xml"},
        {"max_hops": [1]},
        {"\ud800": 1},
        {"default_agent": "Not A Name"},
        {"not_ours": 1},
    ],
    ids=lambda given: str(given)[:40].encode("ascii", "replace").decode(),
)
def test_what_cannot_be_is_refused_and_nothing_is_written(
    desk: Served, file: Path, settings: dict[str, object]
) -> None:
    status, code = desk.refused("PUT", "/api/settings", {"settings": settings})
    assert (status, code) in {
        (400, "bad_setting"),
        (400, "bad_request"),
        (400, "bad_text"),
        (400, "text_too_long"),
        (404, "unknown_agent"),
    }
    assert file.read_text() == TEXT


@pytest.mark.parametrize(
    "body",
    [
        {"workspace": {"path": "/"}},
        {"workspace": {"name": "other"}},
        {"channels": {"enabled": ["telegram"]}},
        {"monitoring": {"heartbeat_interval": 60}},
    ],
    ids=str,
)
def test_what_is_no_setting_here_is_refused_with_what_to_do(desk: Served, body: object) -> None:
    response = desk.ask("PUT", "/api/settings", body)
    assert (response.status_code, response.json()["code"]) == (400, "setting_fixed")
    assert response.json()["hint"]


def test_agents_teams_and_providers_are_merged_and_none_is_lost(desk: Served) -> None:
    body = {
        "custom_providers": {
            "local": {
                "name": "Local",
                "harness": "claude",
                "base_url": "http://127.0.0.1:9",
                "api_key": "sk-local",
            }
        },
        "agents": {"writer": {"name": "Writer", "provider": "custom:local", "model": "m"}},
        "teams": {"desk": {"name": "D", "agents": ["writer"], "leader_agent": "writer"}},
    }
    done = desk.ask("POST", "/api/setup", body)
    assert done.status_code == 200, done.text
    assert "sk-local" not in done.text
    desk.ok("PUT", "/api/settings", {"agents": {"writer": {"model": "n"}}})
    shown = desk.get("/api/settings")
    assert set(shown["agents"]) >= {"assistant", "writer"}
    writer = shown["agents"]["writer"]
    assert (writer["name"], writer["provider"], writer["model"]) == ("Writer", "custom:local", "n")
    assert shown["teams"]["desk"]["agents"] == ["writer"]
    assert shown["custom_providers"]["local"]["api_key"] == MASK


def test_if_one_part_is_refused_no_part_is_done(desk: Served, file: Path) -> None:
    body = {
        "agents": {"nobody": {"name": "N", "provider": "echo"}},
        "teams": {"broken": {"name": "B", "agents": ["missing"], "leader_agent": "missing"}},
        "settings": {"max_hops": 3},
    }
    assert desk.ask("PUT", "/api/settings", body).status_code == 400
    assert file.read_text() == TEXT
    assert "nobody" not in desk.get("/api/settings")["agents"]


def test_the_default_agents_model_is_shown_and_changed_where_clients_look(desk: Served) -> None:
    models = desk.get("/api/settings")["models"]
    assert (models["provider"], models["anthropic"]["model"]) == ("anthropic", "sonnet")
    desk.ok("PUT", "/api/settings", {"models": {"anthropic": {"model": "opus"}}})
    assert desk.get("/api/settings")["agents"]["assistant"]["model"] == "opus"
    refused = desk.refused("PUT", "/api/settings", {"models": {"openai": {"model": "g"}}})
    assert refused == (400, "bad_setting")
    desk.ok("PUT", "/api/settings", {"models": {"anthropic": {"model": "sonnet"}}})


def test_the_default_agents_provider_is_not_changed_by_a_setting(desk: Served) -> None:
    response = desk.ask("PUT", "/api/settings", {"models": {"provider": "openai"}})
    assert (response.status_code, response.json()["code"]) == (400, "setting_fixed")
    assert "@assistant" in response.json()["error"]
    assert desk.get("/api/agents/assistant")["provider"] == "claude"
    # With agents it is a settings file of TinyAGI, where it is what nothing else says.
    agents = {"scribe": {"name": "Scribe", "provider": "openai", "model": "g"}}
    models = {"provider": "openai", "openai": {"model": "g"}}
    desk.ok("POST", "/api/setup", {"models": models, "agents": agents})
    found = desk.get("/api/agents")
    assert (found["assistant"]["provider"], found["scribe"]["provider"]) == ("claude", "codex")


def test_heartbeats_of_agents_are_taken_over(desk: Served) -> None:
    beating = {"name": "B", "provider": "echo", "heartbeat": {"enabled": True, "interval": 600}}
    still = {"name": "S", "provider": "echo", "heartbeat": {"enabled": False}}
    desk.ok("POST", "/api/setup", {"agents": {"beating": beating, "still": still}})
    found = desk.get("/api/agents/beating/heartbeat")
    assert (found["enabled"], found["interval"]) == (True, 600)
    assert desk.get("/api/agents/still/heartbeat")["enabled"] is False
    desk.ok("PUT", "/api/agents/beating", {**beating, "heartbeat": {"interval": 1200}})
    found = desk.get("/api/agents/beating/heartbeat")
    assert (found["enabled"], found["interval"]) == (True, 1200)
    refused = {"heartbeat": {"enabled": True, "interval": 5}}
    assert desk.refused("PUT", "/api/agents/beating", refused) == (400, "bad_heartbeat")


def test_a_channel_is_set_up_as_tinyagis_form_does_it_and_its_token_is_masked(
    desk: Served, file: Path
) -> None:
    body = {"channels": {"enabled": ["telegram"], "telegram": {"bot_token": "4711:secret"}}}
    done = desk.ask("PUT", "/api/settings", body)
    assert done.status_code == 200, done.text
    assert "4711:secret" not in done.text
    assert done.json()["settings"]["settings"]["telegram.bot_token"]["value"] == MASK
    assert '[telegram]\nbot_token = "4711:secret"' in file.read_text()
    desk.ok("PUT", "/api/settings", {"channels": {"telegram": {"bot_token": MASK}}})
    assert "4711:secret" in file.read_text()
    moved = {"settings": {"telegram.api_url": "https://evil.example.org"}}
    assert desk.refused("PUT", "/api/settings", moved) == (400, "setting_fixed")
    desk.ok("PUT", "/api/settings", {"settings": {"telegram.bot_token": None}})
    assert "telegram" not in file.read_text()


def test_all_that_is_wrong_with_a_settings_file_is_said_at_once(desk: Served, file: Path) -> None:
    agent = {"name": "A", "provider": "echo", "model": "m"}
    body = {
        "workspace": {"path": "/elsewhere", "name": "other"},
        "channels": {"enabled": ["signal"], "telegram": {"bot_tokn": "t"}},
        "monitoring": {"heartbeat_interval": 3600},
        "settings": {"nonsense": 1, "max_hops": 3},
        "agents": {
            "filed": {**agent, "prompt_file": "/p.md"},
            "foreign": {**agent, "provider": "nobodys"},
            "fine": agent,
        },
        "teams": {
            "of_refused": {"name": "R", "agents": ["filed"], "leader_agent": "filed"},
            "broken": {"name": "B", "agents": ["missing"], "leader_agent": "missing"},
        },
    }
    response = desk.ask("POST", "/api/setup", body)
    assert (response.status_code, response.json()["code"]) == (400, "bad_setting")
    said = response.json()["error"]
    for each in (
        *(
            "cannot change workspace",
            "name of its directory",
            "channels.enabled",
            "telegram.bot_tokn",
        ),
        *(
            "heartbeat_interval",
            "nonsense",
            "agents.filed",
            "agents.foreign",
            "nobodys",
            "teams.broken",
        ),
    ):
        assert each in said, each
    assert "of_refused" not in said
    assert "fine" not in desk.get("/api/agents")
    assert file.read_text() == TEXT


def test_a_providers_key_is_removed_as_the_references_form_does(desk: Served, file: Path) -> None:
    shown = desk.get("/api/settings")["models"]
    assert shown["anthropic"]["api_key"] == MASK
    # Its form sends all of `models`, and of the provider what is left.
    desk.ok("PUT", "/api/settings", {"models": {"anthropic": {"model": "sonnet"}}})
    assert tomllib.loads(file.read_text())["anthropic_api_key"] == SECRET
    without = {**shown, "anthropic": {"model": shown["anthropic"]["model"]}}
    desk.ok("PUT", "/api/settings", {"models": without})
    assert "anthropic_api_key" not in tomllib.loads(file.read_text())
    for nothing in (None, ""):
        file.write_text(TEXT)
        desk.ok("PUT", "/api/settings", {"models": {"anthropic": {"api_key": nothing}}})
        assert "anthropic_api_key" not in tomllib.loads(file.read_text())


def test_providers_are_named_as_the_references_forms_know_them_behind_its_proxy(
    desk: Served,
) -> None:
    theirs = {"headers": {"X-Bullpen-Client": "tinyagi"}}
    assert desk.get("/api/agents")["assistant"]["provider"] == "claude"
    shown = desk.get("/api/agents", **theirs)["assistant"]
    assert shown["provider"] == "anthropic"
    saved = desk.ok("PUT", "/api/agents/assistant", shown, **theirs)["agent"]
    assert saved["provider"] == "anthropic"
    assert desk.get("/api/settings", **theirs)["agents"]["assistant"]["provider"] == "anthropic"
    assert desk.get("/api/agents/assistant")["provider"] == "claude"


def test_fifty_who_write_at_once_lose_nothing(desk: Served, file: Path) -> None:
    names = ["max_hops", "max_messages", "answer_characters", "aggregate_minutes", "response_hours"]
    failed: list[str] = []

    def write(number: int) -> None:
        body = {"settings": {names[number % 5]: 1000 + number}}
        response = desk.ask("PUT", "/api/settings", body)
        if response.status_code != 200:
            failed.append(response.text)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    found = tomllib.loads(file.read_text())
    for at, name in enumerate(names):
        assert found[name] >= 1000, found
        assert found[name] % 5 == at
    assert found["not_ours"] == {"kept": True}
    assert found["anthropic_api_key"] == SECRET


def test_a_file_that_cannot_be_read_is_left_alone(desk: Served, file: Path) -> None:
    file.write_text("max_runs = 2\nmax_hops = ")
    shown = desk.get("/api/settings")
    hops = shown["settings"]["max_hops"]
    assert (hops["value"], hops["source"]) == (8, "default")
    assert [each["line"] for each in shown["problems"]] == [2]
    assert refused(desk, max_hops=3) == (400, "bad_setting")
    assert file.read_text() == "max_runs = 2\nmax_hops = "


def test_settings_are_for_keys_that_may_everything(desk: Served) -> None:
    for token, code in (
        (desk.key(Scope.READ), "scope_too_small"),
        (desk.key(Scope.ADMIN, agents=("assistant",)), "out_of_reach"),
    ):
        assert desk.refused("GET", "/api/settings", token=token) == (403, code)
        assert desk.refused("PUT", "/api/settings", {}, token=token) == (403, code)
        assert desk.refused("POST", "/api/setup", {}, token=token) == (403, code)
