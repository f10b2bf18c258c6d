"""Schedules over the API: what is sent changes, and what is not sent stays."""

from __future__ import annotations

import pytest
from sqlalchemy import update

from bullpen.core.models import SCHEDULES
from bullpen.core.store.base import Store
from tests.api.scheduling import ALL, HOUR, Document, label, later, made
from tests.api.served import Served
from tests.conformance.verbs import events


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_what_is_not_sent_stays(served: Served, method: str) -> None:
    found = made(
        served,
        label=label(),
        missed="all",
        overlap="queue",
        jitter_seconds=30,
        to="telegram:12345",
        sender="Ann",
        zone="Asia/Tokyo",
    )
    path = f"{ALL}/{found['id']}"
    volatile = {"updated_at", "next", "due_at", "meaning", "cron", "channel"}
    for name, value in (
        ("message", "another"),
        ("label", label()),
        ("missed", "skip"),
        ("overlap", "skip"),
        ("jitter_seconds", 0),
        ("to", "discord:123456789012345678"),
        ("sender", "Bea"),
        ("cron", "30 10 * * *"),
        ("agentId", "worker"),
        ("label", None),
    ):
        changed = served.ok(method, path, {name: value})["schedule"]
        # Of no label the id is shown.
        expected = {**found, name: found["id"] if value is None else value}
        assert {k: v for k, v in changed.items() if k not in volatile} == {
            k: v for k, v in expected.items() if k not in volatile
        }
        assert changed[name] == expected[name]
        found = changed
    assert found["channel"] == "discord"


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_what_only_bullpen_says_cannot_be_overwritten(served: Served, method: str) -> None:
    found = made(served)
    path = f"{ALL}/{found['id']}"
    forged = {
        "id": "schedule_mine",
        "createdAt": 1,
        "made_by": "agent:coder",
        "state": "done",
        "reason": "because",
        "due_at": 5,
        "next": [1],
        "kind": "once",
        "unknown": {"x": [1]},
    }
    assert served.ok(method, path, forged)["schedule"] == found
    assert served.get(path) == found
    assert served.refused("GET", f"{ALL}/schedule_mine") == (404, "unknown_schedule")


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"cron": None, "every_seconds": 3600, "to": "slack:C0123456789/1700000000.000100"},
        {"cron": None, "runAt": "2030-01-01T00:00:00.123Z", "zone": "Asia/Tokyo"},
        {"agentId": None, "team": "dev", "enabled": False, "channel": "web", "address": "ann"},
    ],
    ids=str,
)
def test_what_was_shown_can_be_sent_back_and_changes_nothing(
    served: Served, inside: Store, more: Document
) -> None:
    found = made(served, **more)
    before = len(events(inside))
    path = f"{ALL}/{found['id']}"
    assert served.ok("PUT", path, found)["schedule"] == found
    nulls = dict.fromkeys(set(found) - {"label"})
    assert served.ok("PUT", path, nulls)["schedule"] == found
    assert len(events(inside)) == before


def test_a_new_time_takes_the_place_of_the_one_before(served: Served) -> None:
    shown = made(served, cron=None, runAt=later())
    path = f"{ALL}/{shown['id']}"
    for name, value in (("cron", "0 9 * * *"), ("every_seconds", 600), ("runAt", later(7200))):
        # As a form does: all that was shown, with one thing another.
        sent = {**shown, name: value, "kind": shown["kind"]}
        if name == "runAt":
            sent[name] = value
        shown = served.ok("PUT", path, sent)["schedule"]
        whens = {each: shown[each] for each in ("cron", "runAt", "every_seconds")}
        assert [each for each, found in whens.items() if found not in (None, "")] == [name]
        assert shown["due_at"] == shown["next"][0]
    both = {"cron": "0 8 * * *", "every_seconds": 60}
    assert served.refused("PUT", path, both) == (400, "bad_schedule")
    assert served.get(path) == shown


def test_a_bad_change_is_refused_and_changes_nothing(
    served: Served, subtests: pytest.Subtests
) -> None:
    changes: list[dict[str, object]] = [
        {"runAt": "2020-01-01T00:00Z"},
        {"runAt": "never"},
        {"cron": "x"},
        {"every_seconds": 1},
        {"zone": "Mars/Olympus"},
        {"to": "telegram:@ann"},
        {"message": ""},
        {"agentId": "worker", "team": "dev"},
    ]
    for given in changes:
        with subtests.test(given=given):
            found = made(served)
            path = f"{ALL}/{found['id']}"
            assert served.refused("PUT", path, {**given, "label": "lost"})[0] == 400
            assert served.get(path) == found


def test_a_zone_alone_moves_a_cron_expression_and_no_fixed_time(served: Served) -> None:
    daily = made(served, cron="0 9 * * *")
    moved = served.ok("PUT", f"{ALL}/{daily['id']}", {"zone": "Asia/Tokyo"})["schedule"]
    assert (moved["zone"], moved["due_at"] % (24 * HOUR)) == ("Asia/Tokyo", 0)
    once = made(served, cron=None, runAt=later())
    moved = served.ok("PUT", f"{ALL}/{once['id']}", {"zone": "Asia/Tokyo"})["schedule"]
    assert (moved["zone"], moved["due_at"]) == ("Asia/Tokyo", once["due_at"])


def test_an_agents_becomes_a_teams_and_back(served: Served) -> None:
    found = made(served)
    path = f"{ALL}/{found['id']}"
    of_team = served.ok("PUT", path, {"team": "dev"})["schedule"]
    assert (of_team["agentId"], of_team["team"]) == (None, "dev")
    back = served.ok("PUT", path, {**of_team, "agentId": "worker"})["schedule"]
    assert (back["agentId"], back["team"]) == ("worker", None)
    again = served.ok("PUT", path, {**back, "team": "dev"})["schedule"]
    assert (again["agentId"], again["team"]) == (None, "dev")


def test_enabled_pauses_and_resumes(served: Served) -> None:
    found = made(served, enabled=False)
    path = f"{ALL}/{found['id']}"
    assert (found["enabled"], found["state"], found["due_at"]) == (False, "paused", None)
    assert len(found["next"]) == 5
    on = served.ok("PUT", path, {"enabled": True})["schedule"]
    assert (on["enabled"], on["reason"]) == (True, None)
    assert on["due_at"] == found["next"][0]
    off = served.ok("PATCH", path, {"enabled": False, "message": "another"})["schedule"]
    assert (off["state"], off["reason"], off["message"]) == ("paused", "paused by hand", "another")
    resumed = served.post(f"{path}/resume")["schedule"]
    assert resumed["state"] == "active"
    paused = served.post(f"{path}/pause", {"reason": "holidays"})["schedule"]
    assert (paused["state"], paused["reason"]) == ("paused", "holidays")
    assert served.refused("POST", f"{path}/pause", {"reason": "a\0b"}) == (400, "bad_text")


def test_one_whose_only_time_is_over_is_not_resumed(served: Served, inside: Store) -> None:
    found = made(served, cron=None, runAt=later(), enabled=False)
    path = f"{ALL}/{found['id']}"
    with inside.engine.begin() as connection:
        over = update(SCHEDULES).where(SCHEDULES.c.id == found["id"])
        connection.execute(over.values(at=later(-60), anchor=later(-120)))
    assert served.get(path)["next"] == []
    assert served.refused("POST", f"{path}/resume") == (409, "illegal_move")
    assert served.refused("PUT", path, {"enabled": True}) == (409, "illegal_move")
    # What was shown may be sent back, though its time is in the past by now.
    assert served.ok("PUT", path, served.get(path))["schedule"]["state"] == "paused"
    fresh = served.ok("PUT", path, {"runAt": later(), "enabled": True})["schedule"]
    assert fresh["state"] == "active"
