"""Services over the API: seen, started, stopped, restarted, the API itself included."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bullpen.core.access.audit import list_audit_entries
from bullpen.core.access.keys import Scope, add_key
from bullpen.core.store.open import open_store
from tests.api.served import Served
from tests.api.supervised import Supervised, supervised
from tests.stores import Stores

pytestmark = pytest.mark.slow

CHANNEL = "/api/services/channel/telegram"


@pytest.fixture(scope="module")
def company(stores: Stores) -> Iterator[Supervised]:
    with supervised(stores) as running:
        yield running


def code(company: Supervised, path: str, token: str = "") -> tuple[int, str]:
    """How a POST is refused."""
    response = company.ask("POST", path, token)
    return response.status_code, response.json()["code"]


def test_a_channel_is_stopped_started_and_restarted(company: Supervised) -> None:
    first = company.services()["telegram"]
    assert first["state"] == "RUNNING"
    stopped = company.ok("POST", f"{CHANNEL}/stop")
    assert stopped == {"ok": True, "channel": "telegram", "action": "stopped", "state": "STOPPED"}
    assert company.ok("GET", "/api/status")["channels"]["telegram"] == {
        "running": False,
        "pid": None,
    }
    assert company.ok("POST", f"{CHANNEL}/stop")["state"] == "STOPPED"
    assert company.ok("POST", f"{CHANNEL}/start")["state"] == "RUNNING"
    second = company.services()["telegram"]["pid"]
    assert second != first["pid"]
    assert company.ok("POST", f"{CHANNEL}/start")["state"] == "RUNNING"
    assert company.services()["telegram"]["pid"] == second
    restarted = company.ok("POST", f"{CHANNEL}/restart")
    assert (restarted["action"], restarted["state"]) == ("restarted", "RUNNING")
    third = company.ok("GET", "/api/status")["channels"]["telegram"]
    assert third["running"] is True
    assert third["pid"] not in (first["pid"], second)


def test_apply_starts_what_does_not_run_and_says_what_cannot(company: Supervised) -> None:
    company.ok("POST", f"{CHANNEL}/stop")
    done = company.ok("POST", "/api/services/apply")
    assert sorted(done["started"]) == ["signal", "telegram"]
    assert len(done["errors"]) == 1
    assert "broken" in done["errors"][0]
    assert company.services()["signal"]["state"] == "RUNNING"
    company.ok("POST", "/api/services/signal/stop")


@pytest.mark.parametrize(
    ("path", "status", "name"),
    [
        ("/api/services/channel/nonsense/start", 404, "unknown_service"),
        ("/api/services/channel/api/restart", 404, "unknown_service"),
        ("/api/services/channel/processor/stop", 404, "unknown_service"),
        ("/api/services/nonsense/restart", 404, "unknown_service"),
        ("/api/services/%00/restart", 404, "unknown_service"),
        ("/api/services/telegram/explode", 400, "bad_request"),
        ("/api/services/broken/start", 409, "service_failed"),
        ("/api/services/broken/restart", 409, "service_failed"),
        ("/api/services/api/stop", 409, "service_failed"),
    ],
)
def test_what_cannot_be_done_is_said_so(
    company: Supervised, path: str, status: int, name: str
) -> None:
    assert code(company, path) == (status, name)


def test_the_api_restarts_after_it_has_answered(company: Supervised) -> None:
    before = company.services()
    done = company.ok("POST", "/api/services/api/restart")
    assert (done["name"], done["action"]) == ("api", "restarted")
    after = company.until(
        lambda found: (
            found["api"]["pid"] not in (0, before["api"]["pid"])
            and found["api"]["state"] == "RUNNING"
        )
    )
    assert after["telegram"]["pid"] == before["telegram"]["pid"]


def test_everything_restarts_after_it_has_answered(company: Supervised) -> None:
    before = company.services()
    assert company.ok("POST", "/api/services/restart") == {"ok": True, "action": "restart"}
    company.until(
        lambda found: all(
            found[name]["state"] == "RUNNING" and found[name]["pid"] != before[name]["pid"]
            for name in ("api", "telegram")
        )
    )


def test_only_keys_that_may_everything_steer_and_it_is_in_the_audit_log(
    company: Supervised,
) -> None:
    store = open_store(company.settings)
    with store.write() as tx:
        reader = add_key(tx, "reader", [Scope.READ])[1]
        limited = add_key(tx, "limited", [Scope.ADMIN], ["coder"])[1]
    assert code(company, f"{CHANNEL}/stop", reader) == (403, "scope_too_small")
    for path in (f"{CHANNEL}/stop", "/api/services/restart", "/api/services/apply"):
        assert code(company, path, limited) == (403, "out_of_reach")
    assert company.services()["telegram"]["state"] == "RUNNING"
    company.ok("POST", f"{CHANNEL}/restart")
    with store.read() as tx:
        deeds = [
            (each.key_name, each.target, each.outcome) for each in list_audit_entries(tx, None, 5)
        ]
    store.close()
    assert deeds[0] == ("owner", f"{CHANNEL}/restart", "done")
    assert ("limited", "/api/services/apply", "out_of_reach") in deeds


@pytest.mark.parametrize(
    "path",
    [
        "/api/services/apply",
        "/api/services/restart",
        "/api/services/channel/telegram/start",
        "/api/services/processor/restart",
        "/api/services/api/restart",
    ],
)
def test_without_a_supervisor_it_says_so(served: Served, path: str) -> None:
    assert served.refused("POST", path) == (409, "no_supervisor")
    assert served.get("/api/services") == []
