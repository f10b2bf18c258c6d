"""Schedules over the API: made, shown, refused, listed and deleted."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from bullpen.core.outbox.addresses import NOWHERE
from bullpen.core.schedules.manage import add_schedule
from bullpen.core.schedules.model import NewSchedule
from bullpen.core.schedules.timing import cron_timing
from bullpen.core.store.base import Store
from bullpen.core.store.transaction import Transaction
from tests.api.scheduling import ALL, DAILY, HOUR, Document, label, later, made
from tests.api.served import Served
from tests.api.work import hired

FIELDS = (
    "id label agentId message cron runAt channel sender enabled createdAt "
    "kind every_seconds at zone team to missed overlap jitter_seconds state reason due_at next "
    "made_by meaning updated_at"
)


def test_what_is_made_is_shown_with_the_references_fields_and_ours(served: Served) -> None:
    name = label()
    found = made(served, label=name)
    assert set(found) == set(FIELDS.split())
    assert found["id"].startswith("schedule_")
    told = {each: found[each] for each in ("label", "agentId", "message", "cron", "runAt")}
    assert told == {
        "label": name,
        "agentId": "coder",
        "message": "report",
        "cron": "0 9 * * 1-5",
        "runAt": None,
    }
    assert (found["channel"], found["to"], found["sender"]) == ("schedule", "nowhere", "Scheduler")
    assert (found["enabled"], found["state"], found["reason"]) == (True, "active", None)
    assert (found["missed"], found["overlap"], found["jitter_seconds"]) == ("one", "skip", 0)
    assert (found["kind"], found["made_by"]) == ("cron", "owner")
    assert found["meaning"] == "At 09:00 on Monday through Friday"
    assert len(found["next"]) == 5
    assert found["next"][0] == found["due_at"] > found["createdAt"]
    assert all(each % (24 * HOUR) == 9 * HOUR for each in found["next"])
    assert served.get(f"{ALL}/{found['id']}") == found
    assert served.get(f"{ALL}/{name}") == found
    assert found in served.get(ALL)


def test_every_and_once_are_shown_as_they_were_said(served: Served) -> None:
    every = made(served, cron=None, every_seconds=1800, jitter_seconds=60)
    assert (every["kind"], every["every_seconds"], every["jitter_seconds"]) == ("every", 1800, 60)
    assert every["next"][1] - every["next"][0] == 1_800_000
    assert every["meaning"] == "Every 30m"
    at = later()
    for given in (at, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at // 1000))):
        once = made(served, cron=None, runAt=given)
        assert (once["kind"], once["at"], once["next"]) == ("once", at, [at])
        assert once["runAt"] == time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(at // 1000))


def test_a_time_without_an_offset_is_of_the_zone_that_is_named(served: Served) -> None:
    found = made(served, cron=None, runAt="2030-07-01T12:00", zone="Asia/Tokyo")
    assert found["runAt"] == "2030-07-01T03:00:00.000Z"
    daily = made(served, cron="0 9 * * *", zone="Asia/Tokyo")
    assert (daily["zone"], daily["due_at"] % (24 * HOUR)) == ("Asia/Tokyo", 0)


@pytest.mark.parametrize(
    ("given", "channel", "to"),
    [
        ({"to": "telegram:123456789"}, "telegram", "telegram:123456789"),
        ({"channel": "telegram", "address": "123456789"}, "telegram", "telegram:123456789"),
        ({"channel": "sms", "address": "+491701234567"}, "sms", "sms:+491701234567"),
        ({"channel": "web"}, "web", "web"),
        ({"channel": "schedule"}, "schedule", "nowhere"),
        ({"to": "nowhere"}, "schedule", "nowhere"),
        ({"to": "owner"}, "cli", "cli"),
    ],
    ids=str,
)
def test_where_the_answer_goes_is_said_in_either_way(
    served: Served, given: Document, channel: str, to: str
) -> None:
    found = made(served, **given)
    assert (found["channel"], found["to"]) == (channel, to)


BAD: list[tuple[Document, str]] = [
    ({"cron": "0 9 * *"}, "bad_schedule"),
    ({"cron": "61 9 * * *"}, "bad_schedule"),
    ({"cron": "0 0 30 2 *"}, "bad_schedule"),
    ({"cron": ""}, "bad_schedule"),
    ({"cron": "\ud800 * * * *"}, "bad_request"),
    ({"cron": "0\0 9 * * *"}, "bad_schedule"),
    ({"cron": "* " * 1000}, "bad_request"),
    ({"cron": None}, "bad_schedule"),
    ({"every_seconds": 3600}, "bad_schedule"),
    ({"cron": None, "every_seconds": 59}, "bad_schedule"),
    ({"cron": None, "every_seconds": 0}, "bad_schedule"),
    ({"cron": None, "every_seconds": (1 << 53) - 1}, "bad_schedule"),
    ({"cron": None, "every_seconds": 1 << 70}, "bad_request"),
    ({"cron": None, "runAt": "2020-01-01T00:00Z"}, "bad_schedule"),
    ({"cron": None, "runAt": 1}, "bad_schedule"),
    ({"cron": None, "runAt": "tomorrow"}, "bad_schedule"),
    ({"cron": None, "runAt": "99999-01-01T00:00Z"}, "bad_schedule"),
    ({"cron": None, "runAt": "9999-12-31T23:59:59-23:59"}, "bad_schedule"),
    ({"cron": None, "runAt": "0001-01-01T00:00:00+23:59"}, "bad_schedule"),
    ({"cron": None, "runAt": (1 << 53) - 1}, "bad_schedule"),
    ({"cron": None, "runAt": 1 << 64}, "bad_request"),
    ({"cron": None, "runAt": "\ud800"}, "bad_request"),
    ({"cron": None, "runAt": ""}, "bad_schedule"),
    ({"zone": "Mars/Olympus"}, "bad_schedule"),
    ({"zone": "../../etc/passwd"}, "bad_schedule"),
    ({"zone": "/etc/localtime"}, "bad_schedule"),
    ({"zone": "Europe"}, "bad_schedule"),
    ({"zone": "U\0TC"}, "bad_schedule"),
    ({"zone": "\ud800"}, "bad_request"),
    ({"zone": "x" * 200}, "bad_schedule"),
    ({"agentId": None}, "bad_schedule"),
    ({"team": "dev"}, "bad_schedule"),
    ({"agent": "worker"}, "bad_schedule"),
    ({"message": ""}, "bad_text"),
    ({"message": " \n"}, "bad_text"),
    ({"message": "a\0b"}, "bad_text"),
    ({"message": "\ud800"}, "bad_text"),
    ({"message": None}, "bad_request"),
    ({"label": "two\nlines"}, "bad_name"),
    ({"label": " "}, "bad_text"),
    ({"label": "\ud800"}, "bad_request"),
    ({"sender": "a\0b"}, "bad_text"),
    ({"channel": "telegram"}, "bad_place"),
    ({"channel": "telegram", "address": "@ann"}, "bad_place"),
    ({"channel": "pigeon", "address": "1"}, "bad_place"),
    ({"channel": "heartbeat"}, "bad_place"),
    ({"channel": "web", "address": "\ud800"}, "bad_request"),
    ({"channel": "web", "address": "a\0b"}, "bad_place"),
    ({"address": "1"}, "bad_place"),
    ({"to": "123"}, "bad_place"),
    ({"to": "slack:nobody"}, "bad_place"),
    ({"to": "sms:12"}, "bad_place"),
    ({"to": "web:\ud800"}, "bad_request"),
    ({"to": "web:ann", "channel": "web", "address": "bob"}, "bad_place"),
    ({"jitter_seconds": 86_401}, "bad_schedule"),
    ({"jitter_seconds": (1 << 53) - 1}, "bad_schedule"),
    ({"jitter_seconds": -1}, "bad_request"),
    ({"missed": "never"}, "bad_request"),
    ({"overlap": "parallel"}, "bad_request"),
    ({"enabled": 5}, "bad_request"),
]


def test_what_cannot_be_is_refused_with_the_reason_and_what_to_give(
    served: Served, subtests: pytest.Subtests
) -> None:
    for given, code in BAD:
        with subtests.test(given=given, code=code):
            before = served.get(ALL)
            response = served.ask("POST", ALL, {**DAILY, **given})
            error = response.json()
            assert (response.status_code, error["code"]) == (400, code), error
            assert error["error"]
            assert error["hint"]
            assert served.get(ALL) == before


def test_hints_have_an_example(served: Served) -> None:
    for given, example in (
        ({"cron": "nonsense"}, "0 9 * * 1-5"),
        ({"zone": "Mars/Olympus"}, "Europe/Berlin"),
        ({"cron": None, "runAt": "soon"}, "2026-12-24T18:00"),
        ({"to": "telegram:@ann"}, "telegram:123456789"),
        ({"cron": None, "every_seconds": 5}, "30m"),
    ):
        response = served.ask("POST", ALL, {**DAILY, **given})
        assert example in response.json()["hint"]


def test_who_does_not_exist_cannot_be_asked(served: Served) -> None:
    assert served.refused("POST", ALL, {**DAILY, "agentId": "nobody"}) == (404, "unknown_agent")
    no_team = {**DAILY, "agentId": None, "team": "nobody"}
    assert served.refused("POST", ALL, no_team) == (404, "unknown_team")
    found = made(served)
    path = f"{ALL}/{found['id']}"
    assert served.refused("PUT", path, {"agentId": "nobody"}) == (404, "unknown_agent")
    assert served.get(path) == found


def test_what_does_not_exist_is_404(served: Served) -> None:
    for method, path, body in (
        ("GET", "", None),
        ("PUT", "", {}),
        ("PATCH", "", {"message": "x"}),
        ("DELETE", "", None),
        ("POST", "/pause", {}),
        ("POST", "/resume", None),
        ("POST", "/run", None),
        ("GET", "/runs", None),
        ("GET", "/next", None),
    ):
        for name in ("nothing", "x" * 3000):
            refused = served.refused(method, f"{ALL}/{name}{path}", body)
            assert refused == (404, "unknown_schedule")
        for name in ("a%00b", "%ff", "%ed%a0%80"):
            response = served.ask(method, f"{ALL}/{name}{path}", body)
            assert response.status_code in (400, 404), response.text


def test_a_label_is_given_once(served: Served) -> None:
    name = label()
    first = made(served, label=name)
    assert served.refused("POST", ALL, {**DAILY, "label": name}) == (409, "name_taken")
    assert served.refused("POST", ALL, {**DAILY, "label": first["id"]}) == (409, "name_taken")
    other = made(served)
    path = f"{ALL}/{other['id']}"
    assert served.refused("PUT", path, {"label": name}) == (409, "name_taken")
    served.ok("PUT", f"{ALL}/{name}", {"label": ""})
    assert served.ok("PUT", path, {"label": name})["schedule"]["label"] == name


def test_of_two_who_want_a_label_at_the_same_time_one_gets_it(
    served: Served, inside: Store
) -> None:
    name = label()
    daily = cron_timing("@daily", "UTC", 0)
    mine = NewSchedule(message="x", timing=daily, agent="coder", label=name, place=NOWHERE)
    with ThreadPoolExecutor(1) as pool:
        with inside.write() as tx:
            add_schedule(tx, mine)
            tx.fetch(
                "SELECT 1"
            )  # on PostgreSQL what is written is only sent when something is read
            other = pool.submit(served.refused, "POST", ALL, {**DAILY, "label": name})
            _until_it_waits(tx)
        assert other.result() == (409, "name_taken")


def _until_it_waits(tx: Transaction) -> None:
    """On PostgreSQL another sees what is not committed when it writes, and no sooner."""
    waiting = (
        "SELECT 1 FROM pg_stat_activity "
        "WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    deadline = time.monotonic() + 90
    while tx.dialect == "postgresql" and tx.fetch(waiting) is None:
        # What it tells is the same until the transaction ends, if it is not asked anew.
        tx.fetch("SELECT pg_stat_clear_snapshot() IS NULL")
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_it_is_deleted_by_its_id_or_its_label(served: Served) -> None:
    name = label()
    for found, path in ((made(served), None), (made(served, label=name), name)):
        assert served.ok("DELETE", f"{ALL}/{path or found['id']}") == {"ok": True}
        assert served.refused("GET", f"{ALL}/{found['id']}") == (404, "unknown_schedule")


def test_the_list_is_of_whom_one_asks_for(served: Served, inside: Store) -> None:
    agent = hired(inside)
    mine = made(served, agentId=None, agent=agent)
    off = made(served, agentId=agent, enabled=False)
    teams = made(served, agentId=None, team="dev")
    assert served.get(f"{ALL}?agent={agent}") == [mine, off]
    assert served.get(f"{ALL}?agent={agent}&state=paused") == [off]
    assert teams in served.get(f"{ALL}?team=dev")
    assert mine not in served.get(f"{ALL}?team=dev")
    assert served.get(f"{ALL}?agent=nobody") == []
    assert served.refused("GET", f"{ALL}?state=lost") == (400, "bad_request")


def test_the_next_times_are_as_many_as_one_asks_for(served: Served) -> None:
    found = made(served)
    path = f"{ALL}/{found['id']}/next"
    assert served.get(path) == {"next": found["next"], "zone": "UTC"}
    many = served.get(f"{path}?count=100")["next"]
    assert (many[:5], len(set(many))) == (found["next"], 100)
    for count in ("0", "101", "x", "9" * 30):
        assert served.refused("GET", f"{path}?count={count}") == (400, "bad_request")
    rare = made(served, cron="0 0 29 2 1#5")
    assert len(served.get(f"{ALL}/{rare['id']}/next?count=100")["next"]) > 1


def test_what_the_references_clients_read_as_text_is_text(served: Served) -> None:
    every = made(served, cron=None, every_seconds=3600, label=None)
    assert (every["cron"], every["label"]) == ("", every["id"])
    # As it is shown it may be sent back, and its id is a name that it answers to.
    assert served.ok("PUT", f"{ALL}/{every['label']}", every)["schedule"]["label"] == every["id"]
    copy = {each: every[each] for each in ("agentId", "message", "cron", "every_seconds")}
    copied = served.post(ALL, copy)["schedule"]
    assert (copied["cron"], copied["label"]) == ("", copied["id"])
