"""Schedules over the API: what became of them, and who may do what."""

from __future__ import annotations

import json

from bullpen.core.access.keys import Scope
from bullpen.core.message import Answer, Outcome, Usage
from bullpen.core.queue.claim import claim
from bullpen.core.queue.finish import finish
from bullpen.core.store.base import Store
from tests.api.scheduling import ALL, DAILY, label, made
from tests.api.served import Served
from tests.api.work import hired
from tests.conformance.verbs import events


def test_a_run_is_told_with_its_cost_and_that_its_answer_arrived(
    served: Served, inside: Store
) -> None:
    agent = hired(inside)
    found = made(served, agentId=agent, to="telegram:4711")
    path = f"{ALL}/{found['id']}"
    message = served.post(f"{path}/run")["messageId"]
    (run,) = served.get(f"{path}/runs")
    assert (run["message_id"], run["outcome"], run["state"]) == (message, "fired", "pending")
    assert (run["due_at"], run["deliveries"], run["cost"]) == (None, [], 0)
    assert served.get(path)["due_at"] == found["due_at"]
    with inside.write() as tx:
        taken = claim(tx, "me", agent=agent)
    assert taken is not None
    usage = Usage(input_tokens=100, output_tokens=20, cost=0.25)
    with inside.write() as tx:
        finish(tx, taken.token, Outcome(answers=(Answer(message="done"),), usage=usage))
    (run,) = served.get(f"{path}/runs")
    assert (run["state"], run["cost"], run["tokens"]) == ("completed", 0.25, 120)
    (delivery,) = run["deliveries"]
    assert (delivery["channel"], delivery["status"], delivery["receipts"]) == (
        "telegram",
        "pending",
        [],
    )
    lease = {"channel": "telegram", "worker": "me"}
    leased = served.post("/api/responses/lease", lease)["responses"]
    (mine,) = (each for each in leased if each["id"] == delivery["response"])
    token = {"token": mine["token"]}
    served.post("/api/responses/begin-part", token)
    served.post("/api/responses/end-part", {**token, "receipt": "42"})
    served.post("/api/responses/ack-leased", token)
    (run,) = served.get(f"{path}/runs")
    (delivery,) = run["deliveries"]
    assert (delivery["status"], delivery["receipts"]) == ("acked", ["42"])
    assert delivery["acked_at"] > 0


def test_runs_are_listed_page_by_page(served: Served, inside: Store) -> None:
    found = made(served, agentId=hired(inside))
    path = f"{ALL}/{found['id']}"
    messages = [served.post(f"{path}/run")["messageId"] for _ in range(5)]
    assert [each["message_id"] for each in served.get(f"{path}/runs")] == messages[::-1]
    first = served.ask("GET", f"{path}/runs?since_id=0&limit=2")
    rest = served.get(f"{path}/runs?since_id={first.headers['X-Next-Cursor']}")
    assert [each["message_id"] for each in first.json() + rest] == messages
    assert served.refused("GET", f"{path}/runs?limit=0") == (400, "bad_request")


def test_a_schedule_is_run_for_its_team_by_the_leader(served: Served) -> None:
    found = made(served, agentId=None, team="dev")
    message = served.post(f"{ALL}/{found['id']}/run")["messageId"]
    sent = served.get(f"/api/messages/{message}")
    assert (sent["agent"], sent["team_id"], sent["channel"]) == ("coder", "dev", "schedule")


def test_the_schedule_of_a_removed_agent_is_paused_and_says_why(
    served: Served, inside: Store
) -> None:
    agent = hired(inside)
    found = made(served, agentId=agent)
    path = f"{ALL}/{found['id']}"
    served.ok("DELETE", f"/api/agents/{agent}")
    left = served.get(path)
    assert (left["enabled"], left["state"], left["agentId"]) == (False, "paused", agent)
    assert agent in left["reason"]
    assert served.refused("POST", f"{path}/run") == (404, "unknown_agent")
    assert served.refused("POST", f"{path}/resume") == (404, "unknown_agent")
    assert served.refused("PUT", path, {"enabled": True}) == (404, "unknown_agent")
    given = served.ok("PUT", path, {"agentId": "coder", "enabled": True})["schedule"]
    assert (given["state"], given["agentId"], given["reason"]) == ("active", "coder", None)


def test_a_lane_that_is_closed_takes_no_run_in(served: Served, inside: Store) -> None:
    agent = hired(inside)
    found = made(served, agentId=agent)
    served.post(f"/api/lanes/{agent}/drain", {})
    assert served.refused("POST", f"{ALL}/{found['id']}/run") == (409, "lane_closed")
    assert served.get(f"{ALL}/{found['id']}/runs") == []


def test_a_limited_key_reaches_the_schedules_of_its_agents_alone(
    served: Served, inside: Store
) -> None:
    mine, yours = hired(inside), hired(inside)
    key = served.key(Scope.ADMIN, agents=(mine,))
    found = served.post(ALL, {**DAILY, "agentId": mine}, token=key)["schedule"]
    assert found["made_by"].startswith("key:key_")
    served.ok("PATCH", f"{ALL}/{found['id']}", {"message": "x"}, token=key)
    others = [made(served, agentId=yours), made(served, agentId=None, team="dev")]
    assert [each["id"] for each in served.get(ALL, token=key)] == [found["id"]]
    for given in ({"agentId": yours}, {"agentId": None, "team": "dev"}, {"agentId": "nobody"}):
        refused = served.refused("POST", ALL, {**DAILY, **given}, token=key)
        assert refused == (403, "out_of_reach")
    for given in ({"agentId": yours}, {"team": "dev"}):
        refused = served.refused("PUT", f"{ALL}/{found['id']}", given, token=key)
        assert refused == (403, "out_of_reach")
    for each in others:
        for method, path, body in (
            ("GET", "", None),
            ("PUT", "", {"agentId": mine}),
            ("PATCH", "", {}),
            ("DELETE", "", None),
            ("POST", "/pause", {}),
            ("POST", "/resume", None),
            ("POST", "/run", None),
            ("GET", "/runs", None),
            ("GET", "/next", None),
        ):
            refused = served.refused(method, f"{ALL}/{each['id']}{path}", body, token=key)
            assert refused == (403, "out_of_reach")
        assert served.get(f"{ALL}/{each['id']}")["message"] == "report"


def test_who_may_send_may_run_and_only_an_admin_may_change(served: Served) -> None:
    found = made(served)
    path = f"{ALL}/{found['id']}"
    weak = served.key(Scope.READ, Scope.PUBLISH, Scope.APPROVE, Scope.CLAIM)
    for method, where, body in (
        ("POST", ALL, DAILY),
        ("PUT", path, {}),
        ("PATCH", path, {}),
        ("DELETE", path, None),
        ("POST", f"{path}/pause", {}),
        ("POST", f"{path}/resume", None),
    ):
        assert served.refused(method, where, body, token=weak) == (403, "scope_too_small")
    served.post(f"{path}/run", token=weak)
    reader = served.key(Scope.READ)
    assert served.refused("POST", f"{path}/run", token=reader) == (403, "scope_too_small")
    assert served.refused("GET", ALL, token=served.key(Scope.CLAIM)) == (403, "scope_too_small")


def test_what_was_done_to_schedules_is_in_the_audit_log(served: Served) -> None:
    found = made(served)
    path = f"{ALL}/{found['id']}"
    served.ok("PUT", path, {"message": "x"})
    served.post(f"{path}/pause", {})
    served.post(f"{path}/resume")
    served.post(f"{path}/run")
    served.ok("DELETE", path)
    log = [each["action"] for each in served.get("/api/audit?limit=6")][::-1]
    verbs = ("make", "put", "pause", "resume", "run", "remove")
    assert log == [f"schedules {each}" for each in verbs]


def test_a_change_is_told_in_an_event(served: Served, inside: Store) -> None:
    name = label()
    found = made(served, label=name)
    served.ok("PUT", f"{ALL}/{found['id']}", {"message": "x", "missed": "one"})
    told = [each for each in events(inside) if found["id"] in (each["data"] or "")]
    assert [each["type"] for each in told] == ["schedule_added", "schedule_changed"]
    assert json.loads(told[1]["data"])["changed"] == ["message"]
    shown = served.get("/api/events?limit=1&types=schedule_changed")[0]
    assert (shown["agentId"], shown["data"]["label"]) == ("coder", name)
