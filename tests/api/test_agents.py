"""Agents over the API: taken on, changed, looked at, and let go."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from bullpen.core.access.keys import Scope
from bullpen.core.company import change_agent
from bullpen.core.store.base import Store
from tests.api.served import Served
from tests.conformance.verbs import events

ADA: dict[str, Any] = {
    "name": "Ada",
    "provider": "claude",
    "model": "opus",
    "system_prompt": "You count.",
}


def test_the_list_is_a_map_with_each_agents_lane(served: Served) -> None:
    found = served.get("/api/agents")
    assert {"assistant", "coder", "worker", "other"} <= found.keys()
    coder = found["coder"]
    assert (coder["name"], coder["provider"]) == ("Code Wizard", "echo")
    assert coder["working_directory"] == str(served.settings.workspace / "coder")
    assert (coder["permission"], coder["context"]) == ("edit", "agent")
    assert coder["scheduling"] == "self"
    assert (coder["reach"], coder["sandbox"]) == ("conversation", "none")
    assert coder["lane"] == {"state": "active", "reason": None, "pending": 0, "processing": 0}
    assert served.get("/api/agents/coder") == coder


def test_a_lane_is_counted_as_it_is(served: Served) -> None:
    served.ok("PUT", "/api/agents/busy", ADA)
    served.post("/api/message", {"message": "@busy one"})
    served.post("/api/message", {"message": "@busy two"})
    assert served.get("/api/agents/busy")["lane"]["pending"] == 2
    assert served.get("/api/agents")["busy"]["lane"]["pending"] == 2


def test_put_takes_an_agent_on_and_furnishes_its_directory(served: Served) -> None:
    made = served.ok("PUT", "/api/agents/novice", ADA)
    assert (made["ok"], made["provisioned"]) == (True, True)
    assert {name: made["agent"][name] for name in ADA} == ADA
    home = served.settings.workspace / "novice"
    assert (home / "AGENTS.md").is_file()
    assert (home / "memory").is_dir()
    again = served.ok("PUT", "/api/agents/novice", ADA)
    assert (again["agent"], again["provisioned"]) == (made["agent"], False)


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_what_is_not_sent_stays(served: Served, inside: Store, method: str) -> None:
    whole = {
        **ADA,
        "permission": "read",
        "context": "sender",
        "scheduling": "team",
        "reach": "people",
        "sandbox": "bubblewrap",
    }
    served.ok("PUT", "/api/agents/keeper", whole)
    with inside.write() as tx:
        change_agent(tx, "keeper", directory="/srv/somewhere")
    whole["working_directory"] = "/srv/somewhere"
    for name, value in {"model": "haiku", "name": "Bea", "system_prompt": ""}.items():
        whole[name] = value
        changed = served.ok(method, "/api/agents/keeper", {name: value})["agent"]
        assert {each: changed[each] for each in whole} == whole
    before = served.get("/api/agents/keeper")
    nulls = dict.fromkeys(whole)
    assert served.ok(method, "/api/agents/keeper", nulls)["agent"] == before


def test_what_was_shown_can_be_sent_back_and_changes_nothing(served: Served, inside: Store) -> None:
    served.ok("PUT", "/api/agents/mirror", ADA)
    shown = served.get("/api/agents/mirror")
    before = len(events(inside))
    assert served.ok("PUT", "/api/agents/mirror", shown)["agent"] == shown
    assert len(events(inside)) == before


def test_a_working_directory_is_kept_and_that_of_a_new_agent_is_its_own(
    served: Served, inside: Store
) -> None:
    own = str(served.settings.workspace / "mover")
    for sent in ("", own):
        served.ok("PUT", "/api/agents/mover", {**ADA, "working_directory": sent})
        assert served.get("/api/agents/mover")["working_directory"] == own
    with inside.write() as tx:
        change_agent(tx, "mover", directory="/srv/code")
    for sent in ("", "/srv/code"):
        served.ok("PUT", "/api/agents/mover", {**ADA, "working_directory": sent})
        assert served.get("/api/agents/mover")["working_directory"] == "/srv/code"
    back = served.refused("PATCH", "/api/agents/mover", {"working_directory": own})
    assert back == (403, "machine_only")


def test_the_references_names_of_providers_are_taken_and_its_other_fields_passed_over(
    served: Served,
) -> None:
    body = {**ADA, "heartbeat": {"enabled": True, "interval": 60}, "unknown": [1]}
    for given, ours in (("anthropic", "claude"), ("openai", "codex"), ("opencode", "opencode")):
        made = served.ok("PUT", "/api/agents/alias", {**body, "provider": given})
        assert made["agent"]["provider"] == ours


def test_a_provider_that_does_not_exist_is_refused_and_one_that_was_added_is_taken(
    served: Served,
) -> None:
    for name in ("nothing", "custom:none", "custom:", "", "a\0b", "\ud800", "x" * 201):
        body = {**ADA, "provider": name}
        assert served.ask("PUT", "/api/agents/odd", body).status_code == 400, name
    assert served.refused("GET", "/api/agents/odd")[0] == 404
    local = {"name": "L", "harness": "codex", "base_url": "http://127.0.0.1:1", "api_key": "k1"}
    served.ok("PUT", "/api/custom-providers/local", local)
    made = served.ok("PUT", "/api/agents/odd", {**ADA, "provider": "custom:local"})
    assert made["agent"]["provider"] == "custom:local"


def test_a_file_is_never_read_into_a_prompt(served: Served) -> None:
    response = served.ask("PUT", "/api/agents/reader", {**ADA, "prompt_file": "/etc/hostname"})
    assert response.status_code == 400
    assert "system_prompt" in response.json()["hint"]
    assert served.refused("GET", "/api/agents/reader") == (404, "unknown_agent")


def test_nothing_outside_of_the_workspace_is_made(
    served: Served, subtests: pytest.Subtests
) -> None:
    for agent in [
        "..",
        "..%2f..%2fevil",
        "%2e%2e",
        "A",
        "a b",
        "-x",
        "a" * 33,
        "a%00b",
        "a.b",
        "%ff",
        "~",
        "ä",
    ]:
        with subtests.test(agent=agent):
            settings = served.settings
            served.ok("PUT", "/api/agents/ada", ADA)
            before = {*settings.workspace.iterdir(), *settings.workspace.parent.iterdir()}
            response = served.ask("PUT", f"/api/agents/{agent}", ADA)
            assert response.status_code in (400, 404, 405), response.text
            assert before == {*settings.workspace.iterdir(), *settings.workspace.parent.iterdir()}


def test_a_link_in_an_agents_place_is_not_furnished(served: Served) -> None:
    elsewhere = served.settings.home / "elsewhere"
    elsewhere.mkdir()
    served.settings.workspace.mkdir(exist_ok=True)
    (served.settings.workspace / "linked").symlink_to(elsewhere)
    made = served.ok("PUT", "/api/agents/linked", ADA)
    assert made["provisioned"] is False
    assert list(elsewhere.iterdir()) == []


def test_a_directory_that_cannot_be_furnished_is_no_failure_of_the_agents(served: Served) -> None:
    served.settings.workspace.mkdir(exist_ok=True)
    (served.settings.workspace / "blocked").write_text("a file in its place")
    made = served.ok("PUT", "/api/agents/blocked", ADA)
    assert (made["provisioned"], made["agent"]["name"]) == (False, "Ada")


def test_what_is_no_agent_is_refused_and_nothing_is_made(
    served: Served, subtests: pytest.Subtests
) -> None:
    bodies: list[object] = [
        {"name": "no provider"},
        {"provider": "echo"},
        {**ADA, "working_directory": 5},
        {**ADA, "name": "two\nlines"},
        {**ADA, "name": 5},
        {**ADA, "system_prompt": "\ud800"},
        {**ADA, "system_prompt": "a\x00b"},
        {**ADA, "permission": "everything"},
        {**ADA, "context": 1},
        {**ADA, "scheduling": "everybody"},
        {**ADA, "reach": "everybody"},
        {**ADA, "sandbox": "docker"},
        {**ADA, "model": ["x"]},
        [],
        None,
    ]
    for body in bodies:
        with subtests.test(body=body):
            response = served.ask("PUT", "/api/agents/nobody", body)
            assert response.status_code in (400, 415)
            assert response.json()["error"]
            assert served.refused("GET", "/api/agents/nobody") == (404, "unknown_agent")
            assert not (served.settings.workspace / "nobody").exists()


def test_what_bounds_an_agent_is_changed_by_keys_that_reach_all(served: Served) -> None:
    served.ok("PUT", "/api/agents/bounded", {**ADA, "sandbox": "bubblewrap"})
    limited = served.key(Scope.ADMIN, agents=("bounded", "fresh"))
    for change in (
        {"reach": "all"},
        {"sandbox": "none"},
        {"sandbox": "user"},
        {"reach": "people", "name": "Bound"},
    ):
        refused = served.refused("PATCH", "/api/agents/bounded", change, token=limited)
        assert refused == (403, "out_of_reach")
    new = {**ADA, "provider": "echo", "reach": "all"}
    assert served.refused("PUT", "/api/agents/fresh", new, token=limited)[0] == 403
    same = {"reach": "conversation", "sandbox": "bubblewrap", "name": "Bounded"}
    changed = served.ok("PATCH", "/api/agents/bounded", same, token=limited)["agent"]
    assert {name: changed[name] for name in same} == same
    changed = served.ok("PATCH", "/api/agents/bounded", {"reach": "all"})["agent"]
    assert (changed["reach"], changed["sandbox"]) == ("all", "bubblewrap")
    changed = served.ok("PATCH", "/api/agents/bounded", {"sandbox": "user"})["agent"]
    assert changed["sandbox"] == "user"


def test_what_does_not_exist_is_404_to_all_but_put(served: Served) -> None:
    for method, path, body in (
        ("GET", "", None),
        ("PATCH", "", {"name": "x"}),
        ("DELETE", "", None),
        ("POST", "/reset", None),
    ):
        assert served.refused(method, f"/api/agents/nobody{path}", body) == (404, "unknown_agent")


def test_an_agent_and_a_team_share_their_names(served: Served) -> None:
    assert served.refused("PUT", "/api/agents/dev", ADA) == (409, "name_taken")


def test_who_has_work_is_let_go_only_by_force_and_leaves_his_teams(served: Served) -> None:
    for agent in ("leaver", "stayer"):
        served.ok("PUT", f"/api/agents/{agent}", ADA)
    team = {"name": "Pair", "agents": ["leaver", "stayer"], "leader_agent": "leaver"}
    served.ok("PUT", "/api/teams/pair", team)
    sent = served.post("/api/message", {"message": "@leaver wait"})
    response = served.ask("DELETE", "/api/agents/leaver")
    assert (response.status_code, response.json()["code"]) == (409, "lane_busy")
    assert "force=true" in response.json()["hint"]
    assert served.ok("DELETE", "/api/agents/leaver?force=true") == {"ok": True}
    assert served.get(f"/api/messages/{sent['messageId']}")["status"] == "cancelled"
    left = served.get("/api/teams/pair")
    assert (left["agents"], left["leader_agent"]) == (["stayer"], "stayer")
    assert (served.settings.workspace / "leaver" / "AGENTS.md").is_file()


def test_a_reset_forgets_the_sessions(served: Served, inside: Store) -> None:
    served.ok("PUT", "/api/agents/forgetful", ADA)
    assert served.post("/api/agents/forgetful/reset") == {"ok": True}
    told = [each for each in events(inside) if each["agent"] == "forgetful"]
    assert told[-1]["type"] == "session_reset"


@pytest.mark.parametrize("agent", ["crowd", "returner"])
def test_many_who_add_the_same_agent_add_it_once(served: Served, inside: Store, agent: str) -> None:
    earlier = agent == "returner"
    if earlier:  # its lane is there already
        served.ok("PUT", f"/api/agents/{agent}", ADA)
        served.ok("DELETE", f"/api/agents/{agent}")

    def put(number: int) -> int:
        body = {**ADA, "model": str(number)}
        return served.ask("PUT", f"/api/agents/{agent}", body).status_code

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(put, range(24))) == {200}
    told = [each["type"] for each in events(inside) if each["agent"] == agent]
    assert told.count("agent_added") == 1 + earlier


def test_a_limited_key_sees_and_changes_its_own_agents_alone(served: Served) -> None:
    for agent in ("mine", "yours"):
        served.ok("PUT", f"/api/agents/{agent}", ADA)
    key = served.key(Scope.ADMIN, agents=("mine", "new"))
    assert set(served.get("/api/agents", token=key)) == {"mine"}
    served.ok("PATCH", "/api/agents/mine", {"name": "Me"}, token=key)
    served.ok("PUT", "/api/agents/new", {**ADA, "name": "New", "provider": "echo"}, token=key)
    for method, path, body in (
        ("GET", "", None),
        ("PUT", "", ADA),
        ("PATCH", "", {"name": "x"}),
        ("DELETE", "", None),
        ("POST", "/reset", None),
    ):
        there = served.refused(method, f"/api/agents/yours{path}", body, token=key)
        assert there == (403, "out_of_reach")
        # Whether somebody exists is not told either.
        there = served.refused(method, f"/api/agents/nobody{path}", body, token=key)
        assert there == (403, "out_of_reach")


def test_odd_ids_are_refused_to_everybody_alike(served: Served) -> None:
    limited = served.key(Scope.ADMIN, agents=("coder",))
    for agent in ("a%00b", "%ff", "%ed%a0%80", "a" * 5000):
        for token in (limited, served.token):
            for method, body in (("GET", None), ("PUT", ADA), ("PATCH", {}), ("DELETE", None)):
                response = served.ask(method, f"/api/agents/{agent}", body, token=token)
                assert response.status_code in (400, 403, 404), response.text


def test_changes_need_the_scope_admin(served: Served) -> None:
    key = served.key(Scope.READ, Scope.PUBLISH, Scope.APPROVE, Scope.CLAIM)
    served.get("/api/agents", token=key)
    for method, path, body in (
        ("PUT", "", ADA),
        ("PATCH", "", {}),
        ("DELETE", "", None),
        ("POST", "/reset", None),
    ):
        there = served.refused(method, f"/api/agents/coder{path}", body, token=key)
        assert there == (403, "scope_too_small")
