"""Providers over the API: what there is, what is added, and that no key is ever shown."""

from __future__ import annotations

from typing import Any

import pytest

from bullpen.core.access.keys import Scope
from bullpen.core.roster.providers import find_custom_provider
from bullpen.core.store.base import Store
from bullpen.core.text import MASK
from tests.api.served import Served

SECRET = "sk-planted-Qx7Lm2Vt9"
OTHER = "sk-planted-Zr4Np8Wb3"
LOCAL: dict[str, Any] = {
    "name": "Local",
    "harness": "claude",
    "base_url": "http://127.0.0.1:8000/v1",
    "api_key": SECRET,
    "model": "m1",
}


def _key(inside: Store, provider: str) -> str:
    with inside.read() as tx:
        found = find_custom_provider(tx, provider)
    assert found is not None
    return found.api_key


def test_the_built_in_providers_are_listed_and_whether_they_are_ready(served: Served) -> None:
    found = {each["name"]: each for each in served.get("/api/providers")}
    assert {"echo", "claude", "codex", "opencode", "http"} <= found.keys()
    assert found["echo"] == {
        "name": "echo",
        "origin": "built_in",
        "program": None,
        "installed": True,
        "configured": True,
    }
    assert (found["claude"]["program"], found["claude"]["configured"]) == ("claude", False)


def test_a_provider_is_added_changed_and_forgotten(served: Served, inside: Store) -> None:
    shown = {**LOCAL, "api_key": MASK}
    assert served.ok("PUT", "/api/custom-providers/mine", LOCAL) == {"ok": True, "provider": shown}
    assert served.get("/api/custom-providers")["mine"] == shown
    assert served.get("/api/custom-providers/mine") == shown
    assert "custom:mine" in {each["name"] for each in served.get("/api/providers")}
    changed = served.ok("PUT", "/api/custom-providers/mine", {"model": "m2"})["provider"]
    assert changed == {**shown, "model": "m2"}
    assert _key(inside, "mine") == SECRET
    served.ok("PUT", "/api/custom-providers/mine", {"api_key": OTHER})
    assert _key(inside, "mine") == OTHER
    assert served.ok("DELETE", "/api/custom-providers/mine") == {"ok": True}
    assert served.refused("DELETE", "/api/custom-providers/mine") == (404, "unknown_provider")
    assert served.refused("GET", "/api/custom-providers/mine") == (404, "unknown_provider")


def test_a_masked_key_that_is_sent_back_keeps_the_old_one(served: Served, inside: Store) -> None:
    served.ok("PUT", "/api/custom-providers/kept", LOCAL)
    shown = served.get("/api/custom-providers/kept")
    assert served.ok("PUT", "/api/custom-providers/kept", shown)["provider"] == shown
    assert _key(inside, "kept") == SECRET
    assert served.refused("PUT", "/api/custom-providers/new", shown) == (400, "bad_provider")


def test_what_is_no_provider_is_refused_with_no_secret_in_the_reason(
    served: Served, subtests: pytest.Subtests
) -> None:
    changes: list[dict[str, object]] = [
        {"harness": "opencode"},
        {"harness": None},
        {"base_url": "ftp://x"},
        {"base_url": "nonsense"},
        {"base_url": "http://[::1"},
        {"base_url": "http://name:password@host/"},
        {"base_url": "http://a\x00b/"},
        {"api_key": ""},
        {"api_key": "  "},
        {"api_key": "a\x00b"},
        {"api_key": "\ud800"},
        {"api_key": 5},
        {"name": "\ud800"},
    ]
    for change in changes:
        with subtests.test(change=change):
            response = served.ask("PUT", "/api/custom-providers/odd", {**LOCAL, **change})
            assert response.status_code == 400
            assert SECRET not in response.text
            assert "password@" not in response.text
            assert served.refused("GET", "/api/custom-providers/odd")[0] == 404
            assert served.ask("PUT", "/api/custom-providers/A%20b", LOCAL).status_code == 400


def test_no_key_of_a_provider_is_in_any_answer_or_in_the_log(served: Served) -> None:
    served.ok("PUT", "/api/custom-providers/planted", LOCAL)
    agent = {"name": "P", "provider": "custom:planted"}
    served.ok("PUT", "/api/agents/planted", agent)
    served.ok("PUT", "/api/agents/planted/system-prompt", {"content": "Count."})
    served.refused("PUT", "/api/custom-providers/planted", {**LOCAL, "harness": "none"})
    answers = [
        served.ask(method, path, body)
        for method, path, body in (
            ("PUT", "/api/custom-providers/planted", LOCAL),
            ("GET", "/api/custom-providers", None),
            ("GET", "/api/custom-providers/planted", None),
            ("GET", "/api/providers", None),
            ("GET", "/api/agents", None),
            ("GET", "/api/agents/planted", None),
            ("GET", "/api/agents/planted/system-prompt", None),
            ("GET", "/api/agents/planted/skills", None),
            ("GET", "/api/agents/planted/memory", None),
            ("GET", "/api/teams", None),
        )
    ]
    for each in answers:
        assert each.status_code == 200, each.text
        assert SECRET not in each.text + str(each.headers)
    log = served.log.read_text()
    assert "/api/custom-providers/planted" in log
    assert SECRET not in log


def test_providers_are_for_unlimited_keys_and_changes_for_admins(served: Served) -> None:
    limited = served.key(Scope.ADMIN, agents=("coder",))
    for method, path, body in (
        ("GET", "/api/providers", None),
        ("GET", "/api/custom-providers", None),
        ("GET", "/api/custom-providers/x", None),
        ("PUT", "/api/custom-providers/x", LOCAL),
        ("DELETE", "/api/custom-providers/x", None),
    ):
        assert served.refused(method, path, body, token=limited) == (403, "out_of_reach")
    reader = served.key(Scope.READ)
    served.get("/api/custom-providers", token=reader)
    refused = served.refused("PUT", "/api/custom-providers/x", LOCAL, token=reader)
    assert refused == (403, "scope_too_small")


def test_a_key_does_not_follow_an_address_to_another_host(served: Served, inside: Store) -> None:
    served.ok("PUT", "/api/custom-providers/moving", LOCAL)
    moved = {"base_url": "http://evil.example/v1"}
    refused = served.refused("PUT", "/api/custom-providers/moving", moved)
    assert refused == (400, "bad_provider")
    assert served.get("/api/custom-providers/moving")["base_url"] == LOCAL["base_url"]
    served.ok("PUT", "/api/custom-providers/moving", {"base_url": "http://127.0.0.1:8000/v2"})
    assert _key(inside, "moving") == SECRET
    served.ok("PUT", "/api/custom-providers/moving", {**moved, "api_key": OTHER})
    assert _key(inside, "moving") == OTHER
