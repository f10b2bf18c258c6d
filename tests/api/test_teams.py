"""Teams over the API."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from bullpen.core.access.keys import Scope
from tests.api.served import Served

PAIR: dict[str, Any] = {
    "name": "The pair",
    "agents": ["coder", "worker"],
    "leader_agent": "worker",
}
NO_LIMITS = {"max_hops": None, "max_messages": None, "max_cost": None}


def test_the_list_is_a_map(served: Served) -> None:
    dev = served.get("/api/teams")["dev"]
    assert dev == {
        "name": "",
        "agents": ["coder", "worker"],
        "leader_agent": "coder",
        "delivery": "stream",
        "limits": NO_LIMITS,
    }
    assert served.get("/api/teams/dev") == dev


def test_put_makes_a_team_and_changes_what_is_sent(served: Served) -> None:
    made = served.ok("PUT", "/api/teams/pair", {**PAIR, "color": "unknown fields are passed over"})
    assert made == {"ok": True, "team": {**PAIR, "delivery": "stream", "limits": NO_LIMITS}}
    limits = {"max_hops": 3, "max_cost": 1.5}
    whole = made["team"]
    for change in (
        {"name": "Two"},
        {"delivery": "aggregate"},
        {"leader_agent": "coder"},
        {"agents": ["other", "coder"]},
    ):
        whole |= change
        assert served.ok("PUT", "/api/teams/pair", change)["team"] == whole
    whole["limits"] = {**NO_LIMITS, **limits}
    assert served.ok("PATCH", "/api/teams/pair", {"limits": limits})["team"] == whole
    whole["limits"]["max_hops"] = None
    assert served.ok("PATCH", "/api/teams/pair", {"limits": {"max_hops": None}})["team"] == whole
    assert served.ok("PUT", "/api/teams/pair", whole)["team"] == whole
    assert served.ok("DELETE", "/api/teams/pair") == {"ok": True}
    assert served.refused("GET", "/api/teams/pair") == (404, "unknown_team")


def test_what_is_no_team_is_refused_and_changes_nothing(
    served: Served, subtests: pytest.Subtests
) -> None:
    changes: list[tuple[dict[str, object], str]] = [
        ({"agents": []}, "bad_team"),
        ({"agents": ["coder", "coder"]}, "bad_team"),
        ({"agents": ["coder", "nobody"]}, "bad_team"),
        ({"agents": ["coder", "a\x00b"]}, "bad_text"),
        ({"agents": ["coder", "\ud800"]}, "bad_request"),
        ({"agents": ["coder"]}, "bad_team"),
        ({"agents": "coder"}, "bad_request"),
        ({"leader_agent": "other"}, "bad_team"),
        ({"delivery": "pigeon"}, "bad_request"),
        ({"limits": {"max_hops": -1}}, "bad_request"),
        ({"limits": {"max_messages": 1 << 80}}, "bad_request"),
        ({"limits": {"max_cost": float("nan")}}, "bad_request"),
        ({"limits": {"max_cost": float("inf")}}, "bad_request"),
        ({"name": "two\nlines"}, "bad_name"),
    ]
    for team in ["dev", "unmade"]:
        for change, code in changes:
            with subtests.test(team=team, change=change, code=code):
                before = served.get("/api/teams")
                assert served.refused("PUT", f"/api/teams/{team}", {**PAIR, **change}) == (
                    400,
                    code,
                )
                assert served.get("/api/teams") == before


def test_a_new_team_needs_all_that_makes_one(served: Served) -> None:
    for missing in PAIR:
        body = {name: value for name, value in PAIR.items() if name != missing}
        assert served.refused("PUT", "/api/teams/unmade", body) == (400, "bad_request")
    for name in ("A", "..", "a b", "a%00b"):
        assert served.ask("PUT", f"/api/teams/{name}", PAIR).status_code in (400, 404, 405)
    assert served.refused("PUT", "/api/teams/coder", PAIR) == (409, "name_taken")


def test_what_does_not_exist_is_404_to_all_but_put(served: Served) -> None:
    for method, body in (("GET", None), ("PATCH", {"name": "x"}), ("DELETE", None)):
        assert served.refused(method, "/api/teams/nowhere", body) == (404, "unknown_team")


def test_many_who_make_the_same_team_make_it_once(served: Served) -> None:
    def put(number: int) -> int:
        return served.ask("PUT", "/api/teams/crowd", {**PAIR, "name": f"{number}"}).status_code

    with ThreadPoolExecutor(8) as pool:
        statuses = set(pool.map(put, range(24)))
    assert 200 in statuses
    assert statuses <= {200, 409}
    assert served.get("/api/teams/crowd")["agents"] == PAIR["agents"]


def test_a_limited_key_reaches_a_team_if_it_reaches_all_members(served: Served) -> None:
    served.ok("PUT", "/api/teams/mixed", {**PAIR, "agents": ["worker", "other"]})
    some = served.key(Scope.ADMIN, agents=("worker",))
    both = served.key(Scope.ADMIN, agents=("worker", "other"))
    assert served.get("/api/teams", token=some) == {}
    assert set(served.get("/api/teams", token=both)) == {"mixed"}
    served.get("/api/teams/mixed", token=both)
    for method, body in (("GET", None), ("PUT", PAIR), ("PATCH", {"name": "x"}), ("DELETE", None)):
        refused = served.refused(method, "/api/teams/mixed", body, token=some)
        assert refused == (403, "out_of_reach")
    assert served.refused("PUT", "/api/teams/new", PAIR, token=both) == (403, "out_of_reach")
    takes_in = {"agents": ["worker", "other", "coder"]}
    refused = served.refused("PATCH", "/api/teams/mixed", takes_in, token=both)
    assert refused == (403, "out_of_reach")
    assert served.ok("DELETE", "/api/teams/mixed", token=both) == {"ok": True}


def test_changes_need_the_scope_admin(served: Served) -> None:
    key = served.key(Scope.READ, Scope.PUBLISH, Scope.APPROVE, Scope.CLAIM)
    for method, body in (("PUT", PAIR), ("PATCH", {}), ("DELETE", None)):
        refused = served.refused(method, "/api/teams/dev", body, token=key)
        assert refused == (403, "scope_too_small")
