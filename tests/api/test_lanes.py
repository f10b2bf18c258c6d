"""Lanes over the API: how they behave, and whether they run."""

from __future__ import annotations

from typing import Any

import pytest

from bullpen.core.access.keys import Scope
from bullpen.core.company import remove_agent
from bullpen.core.store.base import Store
from tests.api.served import Served
from tests.api.work import hired, sent
from tests.conformance.verbs import do, done, take, try_claim


def lane(served: Served, agent: str) -> dict[str, Any]:
    """One lane, as it is shown."""
    found: dict[str, Any] = served.get(f"/api/lanes/{agent}")
    return found


def test_a_lane_is_shown_with_its_policy_and_what_is_in_it(served: Served, inside: Store) -> None:
    agent = hired(inside)
    sent(served, agent)
    sent(served, agent, senderId="U2")
    take(inside, agent, limit=1)
    found = lane(served, agent)
    assert (found["pending"], found["processing"], found["worker"]) == (1, 1, "worker-1")
    assert found["lease_expires_at"] > found["claimed_at"] > 0
    assert (found["state"], found["outside"], found["reason"]) == ("active", True, None)
    policy = ("ordering", "batching", "max_depth", "overflow", "max_attempts")
    assert [found[name] for name in policy] == ["fifo", "all", None, "reject", 5]
    assert found in served.get("/api/lanes")


def test_an_idle_lane_has_no_worker(served: Served, inside: Store) -> None:
    agent = hired(inside)
    sent(served, agent)
    done(inside, take(inside, agent).token)
    found = lane(served, agent)
    idle = ("worker", "claimed_at", "lease_expires_at", "waits_until")
    assert [found[name] for name in idle] == [None] * 4
    assert found["processing"] == 0


def test_a_change_keeps_what_it_does_not_name(served: Served, inside: Store) -> None:
    agent = hired(inside)
    path = f"/api/lanes/{agent}"
    served.ok("PATCH", path, {"max_depth": 2, "max_attempts": 9})
    found = served.ok("PATCH", path, {"batching": "one", "overflow": "drop_oldest"})
    assert found == lane(served, agent)
    assert (found["max_depth"], found["max_attempts"]) == (2, 9)
    assert (found["batching"], found["overflow"], found["ordering"]) == (
        "one",
        "drop_oldest",
        "fifo",
    )
    found = served.ok("PATCH", path, {"max_depth": None, "max_attempts": None})
    assert (found["max_depth"], found["max_attempts"]) == (None, 5)
    assert found["batching"] == "one"


def test_a_new_order_is_that_of_what_waits_already(served: Served, inside: Store) -> None:
    agent = hired(inside)
    sent(served, agent, "later", senderId="U1")
    first = sent(served, agent, "urgent", senderId="U2", priority=0)
    served.ok("PATCH", f"/api/lanes/{agent}", {"ordering": "priority"})
    assert take(inside, agent, limit=1).primary.message_id == first


def test_a_full_lane_takes_nothing_more(served: Served, inside: Store) -> None:
    agent = hired(inside)
    served.ok("PATCH", f"/api/lanes/{agent}", {"max_depth": 1})
    sent(served, agent)
    refused = served.refused("POST", "/api/message", {"message": f"@{agent} more"})
    assert refused == (429, "lane_full")


def test_a_paused_lane_takes_in_and_hands_out_nothing(served: Served, inside: Store) -> None:
    agent = hired(inside)
    served.post(f"/api/lanes/{agent}/pause", {"reason": "tea"})
    assert (lane(served, agent)["state"], lane(served, agent)["reason"]) == ("paused", "tea")
    sent(served, agent)
    assert try_claim(inside, agent) is None
    served.post(f"/api/lanes/{agent}/resume")
    assert lane(served, agent)["reason"] is None
    take(inside, agent)


def test_a_draining_lane_hands_out_and_takes_nothing_in(served: Served, inside: Store) -> None:
    agent = hired(inside)
    sent(served, agent)
    served.post(f"/api/lanes/{agent}/drain", {})
    refused = served.refused("POST", "/api/message", {"message": f"@{agent} more"})
    assert refused == (409, "lane_closed")
    take(inside, agent)


def test_only_an_empty_lane_is_archived(served: Served, inside: Store) -> None:
    agent = hired(inside)
    sent(served, agent)
    path = f"/api/lanes/{agent}"
    assert served.refused("POST", f"{path}/archive", {}) == (409, "lane_busy")
    done(inside, take(inside, agent).token)
    served.post(f"{path}/archive", {"reason": "season over"})
    assert lane(served, agent)["state"] == "archived"
    assert served.refused("POST", f"{path}/pause", {}) == (409, "illegal_move")
    served.post(f"{path}/resume")
    assert lane(served, agent)["state"] == "active"


def test_the_lane_of_a_removed_agent_stays_closed(served: Served, inside: Store) -> None:
    agent = hired(inside)
    do(inside, remove_agent, agent)
    for verb in ("pause", "resume", "drain", "archive"):
        refused = served.refused("POST", f"/api/lanes/{agent}/{verb}", {})
        assert refused == (404, "unknown_agent")
    assert served.refused("PATCH", f"/api/lanes/{agent}", {}) == (404, "unknown_agent")
    assert lane(served, agent)["state"] == "archived"


def test_a_policy_that_cannot_be_is_refused(
    served: Served, inside: Store, subtests: pytest.Subtests
) -> None:
    for change in [
        {"max_depth": 0},
        {"max_depth": 1 << 40},
        {"max_depth": "many"},
        {"max_attempts": 0},
        {"max_attempts": 1 << 31},
        {"ordering": "random"},
        {"ordering": None},
        {"batching": "some"},
        {"overflow": ""},
        {"state": "paused"},
        [],
    ]:
        with subtests.test(change=change):
            agent = hired(inside)
            before = lane(served, agent)
            assert served.refused("PATCH", f"/api/lanes/{agent}", change)[0] == 400
            assert lane(served, agent) == before


@pytest.mark.parametrize("name", ["nobody", "%00", "x" * 100, "%F0%9F"])
def test_a_lane_that_is_not_there_is_said_not_to_be(served: Served, name: str) -> None:
    for method, path, body in (
        ("GET", "", None),
        ("PATCH", "", {}),
        ("POST", "/pause", {"reason": "x"}),
        ("POST", "/resume", None),
        ("POST", "/drain", {}),
        ("POST", "/archive", {}),
    ):
        status, _ = served.refused(method, f"/api/lanes/{name}{path}", body)
        assert status in (400, 404), (method, path)


def test_who_reads_changes_nothing_and_who_has_one_agent_sees_one(
    served: Served, inside: Store
) -> None:
    mine, other = hired(inside), hired(inside)
    reader = served.key(Scope.READ, Scope.APPROVE)
    small = (403, "scope_too_small")
    assert served.refused("PATCH", f"/api/lanes/{mine}", {}, token=reader) == small
    assert served.refused("POST", f"/api/lanes/{mine}/pause", {}, token=reader) == small
    limited = served.key(Scope.ADMIN, agents=(mine,))
    assert [each["agent"] for each in served.get("/api/lanes", token=limited)] == [mine]
    out = (403, "out_of_reach")
    assert served.refused("GET", f"/api/lanes/{other}", token=limited) == out
    assert served.refused("PATCH", f"/api/lanes/{other}", {}, token=limited) == out
    assert served.refused("POST", f"/api/lanes/{other}/pause", {}, token=limited) == out
    served.post(f"/api/lanes/{mine}/pause", {}, token=limited)
