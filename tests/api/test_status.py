"""What runs, the ends of the logs, and the maintenance, over the API."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from sqlalchemy import update

from bullpen import __version__
from bullpen.core.access.keys import Scope
from bullpen.core.maintenance.jobs import JOBS, MaintenanceJob
from bullpen.core.models import SYSTEM_AGENTS
from bullpen.core.roster.providers import CustomProvider, Harness, add_custom_provider
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from tests.api.served import Served
from tests.maintenance.election import enter_rota, run_due

LINES = [f"2026-01-01T00:00:00Z INFO bullpen: line {number}" for number in range(3000)]


@pytest.fixture(scope="module")
def logs(office: Settings) -> Path:
    """Logs of services."""
    directory = office.home / "logs"
    directory.mkdir(exist_ok=True)
    (directory / "processor.log").write_text("\n".join(LINES) + "\n")
    return directory


def test_the_status_has_what_clients_look_for_and_our_own(served: Served, inside: Store) -> None:
    found = served.get("/api/status")
    assert found["ok"] is True
    assert isinstance(found["uptime"], int)
    assert found["uptime"] < 3600
    assert found["server"] == {"running": True, "port": int(served.url.rpartition(":")[2])}
    assert found["channels"] == {}
    assert found["heartbeat"] == {"running": False, "interval": 0, "lastSent": {}}
    assert found["version"] == __version__
    assert found["supervised"] is False
    assert found["workers"]["api"] >= 1


def test_a_key_for_some_agents_sees_the_numbers_of_these_alone(served: Served) -> None:
    mine = served.key(Scope.READ, agents=("worker",))
    before = served.get("/api/status", token=mine)["queue"]
    served.post("/api/message", {"message": "@worker one"})
    served.post("/api/message", {"message": "@coder two"})
    found = served.get("/api/status", token=mine)["queue"]
    assert found["pending"] == before["pending"] + 1
    assert (found["dead"], found["held"], found["outgoing"]) == (None, None, None)
    everything = served.get("/api/status")["queue"]
    assert everything["pending"] >= found["pending"] + 1
    assert everything["dead"] == 0


def test_the_last_lines_of_a_log_are_given(served: Served, logs: Path) -> None:
    assert served.get("/api/logs")["lines"] == LINES[-100:]
    assert served.get("/api/logs?limit=3&service=processor")["lines"] == LINES[-3:]
    assert served.get("/api/logs?limit=1000")["lines"] == LINES[-1000:]
    (logs / "half.log").write_bytes(b"first\nsecond, and no end \xff")
    assert served.get("/api/logs?service=half")["lines"] == ["first", "second, and no end \ufffd"]
    (logs / "empty.log").touch()
    assert served.get("/api/logs?service=empty")["lines"] == []


def test_a_log_of_any_length_is_read_from_its_end(served: Served, logs: Path) -> None:
    with (logs / "huge.log").open("wb") as file:
        file.truncate(1 << 40)
        file.seek(0, 2)
        file.write(b"\nthe last line\n")
    began = time.monotonic()
    assert served.get("/api/logs?service=huge&limit=1")["lines"] == ["the last line"]
    found = served.ask("GET", "/api/logs?service=huge&limit=1000")
    assert time.monotonic() - began < 60
    assert len(found.content) < 8 << 20
    (logs / "huge.log").unlink()


def test_secrets_in_a_log_are_hidden(
    served: Served, logs: Path, inside: Store, office: Settings
) -> None:
    with inside.write() as tx:
        provider = CustomProvider(
            id="planted",
            harness=Harness.CLAUDE,
            base_url="http://x",
            api_key="planted-provider-key",
        )
        add_custom_provider(tx, provider)
    (office.home / "settings.toml").write_text('openai_api_key = "planted-in-the-file"\n')
    token = office.token_file.read_text().strip()
    key = served.key(Scope.READ)
    lines = [f"a {word} b" for word in ("planted-provider-key", "planted-in-the-file", token, key)]
    (logs / "leaky.log").write_text("\n".join(lines))
    try:
        assert served.get("/api/logs?service=leaky")["lines"] == ["a [hidden] b"] * 4
    finally:
        (office.home / "settings.toml").unlink()


@pytest.mark.parametrize(
    "service", ["nonsense", "../processor", "..%2f..%2fetc%2fpasswd", "%00", "", "/etc/passwd", "*"]
)
def test_only_logs_that_exist_are_read(served: Served, logs: Path, service: str) -> None:
    refused = served.refused("GET", f"/api/logs?service={service}")
    assert refused == (404, "unknown_service")


@pytest.mark.parametrize("limit", ["0", "-1", "1001", "abc", "9" * 30])
def test_a_limit_that_is_none_is_refused(served: Served, limit: str) -> None:
    assert served.refused("GET", f"/api/logs?limit={limit}") == (400, "bad_request")


def test_logs_are_for_keys_that_may_everything(served: Served, logs: Path) -> None:
    for token, code in (
        (served.key(Scope.READ), "scope_too_small"),
        (served.key(Scope.ADMIN, agents=("coder",)), "out_of_reach"),
    ):
        assert served.refused("GET", "/api/logs", token=token) == (403, code)


def test_the_maintenance_says_what_it_did_and_when(served: Served, inside: Store) -> None:
    fresh = served.get("/api/system-agents")
    assert [each["name"] for each in fresh] == [each.name for each in JOBS]
    enter_rota(inside)
    with inside.engine.begin() as connection:
        connection.execute(update(SYSTEM_AGENTS).values(next_run_at=0))
    run_due(inside, "test")
    for each, agent in zip(served.get("/api/system-agents"), JOBS, strict=True):
        assert each["every_seconds"] == agent.every_seconds
        assert each["last_run_at"] > 0
        assert each["last_duration"] >= 0
        assert each["last_result"]
        assert each["last_error"] is None
        assert each["next_run_at"] > each["last_run_at"]
        assert (each["failures"], each["holder"], each["running_since"]) == (0, None, None)


def test_a_loop_that_runs_and_one_that_fails_say_so(served: Served, inside: Store) -> None:
    seen: dict[str, dict[str, object]] = {}

    def run(_: Store) -> str:
        seen.update({each["name"]: each for each in served.get("/api/system-agents")})
        raise OSError("disk")

    enter_rota(inside)
    with inside.engine.begin() as connection:
        connection.execute(update(SYSTEM_AGENTS).values(next_run_at=0))
    run_due(inside, "test", (MaintenanceJob("space", 600, run),))
    assert seen["space"]["holder"] == "test"
    assert seen["space"]["running_since"] is not None
    (failed,) = (each for each in served.get("/api/system-agents") if each["name"] == "space")
    assert (failed["failures"], failed["last_error"], failed["holder"]) == (1, "disk", None)
