"""bullpen up, status and down: the services as a person starts, sees and stops them."""

from __future__ import annotations

import socket
import stat
import urllib.request
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from bullpen.core.maintenance.rota import ROTA
from tests.api.served import free_port
from tests.cli.command import Bullpen
from tests.processor.working import eventually

pytestmark = pytest.mark.slow


@pytest.fixture
def bullpen(bullpen: Bullpen) -> Bullpen:
    """The command, with a port that no other home has."""
    return replace(bullpen, environ={"BULLPEN_API_PORT": str(free_port())})


def pids(bullpen: Bullpen) -> dict[str, int]:
    """The processes of the services that are up."""
    found = bullpen("status", "--json").json["services"]
    return {each["name"]: each["pid"] for each in found}


def supervisor(bullpen: Bullpen) -> int:
    """The supervisor's process."""
    return int((bullpen.home / "run" / "supervisord.pid").read_text())


def test_up_send_status_down(bullpen: Bullpen) -> None:
    started = bullpen.ok("up")
    assert "RUNNING" in started.out
    assert "bullpen send" in started.out
    url = f"http://127.0.0.1:{bullpen.environ['BULLPEN_API_PORT']}"
    assert f"The API is at {url}" in started.out
    with urllib.request.urlopen(f"{url}/readyz", timeout=30) as answer:
        assert answer.status == 200
    services = bullpen.ok("status", "--json").json["services"]
    assert {each["name"]: each["state"] for each in services} == {
        "api": "RUNNING",
        "processor": "RUNNING",
        "scheduler": "RUNNING",
    }
    before = pids(bullpen)
    for pid in before.values():
        assert psutil.pid_exists(pid)
        assert str(pid) in bullpen.ok("status").out
    assert bullpen.ok("send", "hello").out.splitlines()[0] == "@assistant: hello"

    again = bullpen.ok("up")
    assert "runs already" in again.out
    assert f"The API is at {url}" in again.out
    assert pids(bullpen) == before

    main = supervisor(bullpen)
    assert "stopped" in bullpen.ok("down").out
    psutil.wait_procs([psutil.Process(each) for each in (main,) if psutil.pid_exists(each)], 20)
    assert not any(psutil.pid_exists(pid) for pid in before.values())
    stopped = bullpen("status", "--json")
    assert stopped.status == 3
    assert stopped.json["services"] == []
    assert "does not run" in bullpen.ok("down").out
    for name in before:
        log = (bullpen.home / "logs" / f"{name}.log").read_text()
        assert "has stopped" in log
        assert "Traceback" not in log


def test_status_shows_what_keeps_the_store_in_order(bullpen: Bullpen) -> None:
    assert bullpen("status", "--json").json["system_agents"] is not None
    bullpen.ok("up")

    def ran() -> bool:
        found = bullpen.ok("status", "--json").json["system_agents"]
        assert [each["name"] for each in found] == [each.name for each in ROTA]
        return all(each["last_run_at"] and each["last_error"] is None for each in found)

    eventually(ran, "every loop ran")
    shown = {line.split()[0]: line for line in bullpen.ok("status").out.splitlines() if line}
    assert "ago" in shown["leases"]
    assert " ms " in shown["leases"]
    assert "0 claims taken back" in shown["leases"]
    assert "1 scheduler; 0 lost" in shown["workers"]
    bullpen.ok("down")


def test_status_shows_the_services_while_the_database_cannot_be_reached(bullpen: Bullpen) -> None:
    bullpen.ok("up")
    away = replace(
        bullpen,
        environ={
            **bullpen.environ,
            "BULLPEN_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
        },
    )
    assert away("status", "--json").json["system_agents"] is None
    shown = away.ok("status").out
    assert "scheduler    RUNNING" in shown
    assert "The system agents are not known: " in shown
    bullpen.ok("down")


def test_where_the_port_is_taken_up_says_so_and_messages_are_answered(bullpen: Bullpen) -> None:
    port = bullpen.environ["BULLPEN_API_PORT"]
    with socket.create_server(("127.0.0.1", int(port))):
        started = bullpen("up")
        assert started.status == 3
        assert "api does not start" in started.err
        assert f"port {port} of 127.0.0.1 is taken" in started.err
        assert "api_port" in started.err
        assert "The API is at" not in started.out
        assert bullpen.ok("send", "hello").out.splitlines()[0] == "@assistant: hello"
        assert bullpen("status").status == 3
    bullpen.ok("down")


def test_down_gives_back_what_does_not_end_and_up_takes_it_again(bullpen: Bullpen) -> None:
    bullpen.ok("up", BULLPEN_GRACE_SECONDS="1")
    message_id = bullpen.ok("send", "!sleep 3600", "--no-wait").out.strip()
    while bullpen.ok("queue", "status", "--json").json["processing"] == 0:
        assert bullpen.ok("queue", "status", "--json").json["dead"] == 0
    bullpen.ok("down")
    found = bullpen.ok("queue", "status", "--json").json
    assert (found["pending"], found["processing"], found["dead"]) == (1, 0, 0)
    bullpen.ok("queue", "cancel", message_id)


def test_a_service_that_is_killed_comes_back_by_itself(bullpen: Bullpen) -> None:
    bullpen.ok("up")
    first = pids(bullpen)["processor"]
    psutil.Process(first).kill()
    answer = bullpen.ok("send", "still there?", "--timeout", "100").out
    assert answer.splitlines()[0] == "@assistant: still there?"
    assert pids(bullpen)["processor"] != first
    bullpen.ok("down")


def test_after_a_kill_of_the_supervisor_up_starts_anew(bullpen: Bullpen) -> None:
    bullpen.ok("up")
    old = psutil.Process(supervisor(bullpen))
    family = [old, *old.children(recursive=True)]
    for each in family:
        each.kill()
    psutil.wait_procs(family, 20)
    assert bullpen("status").status == 3
    bullpen.ok("up")
    assert bullpen.ok("status").status == 0
    bullpen.ok("down")


def test_what_up_makes_is_the_owners_alone(bullpen: Bullpen) -> None:
    bullpen.ok("up")
    for name in ("run", "logs"):
        assert stat.S_IMODE((bullpen.home / name).stat().st_mode) == 0o700
    assert stat.S_IMODE((bullpen.home / "run" / "supervisor.sock").stat().st_mode) == 0o600
    bullpen.ok("down")


def test_status_and_down_where_nothing_was_ever_started(empty: Bullpen) -> None:
    result = empty("status")
    assert result.status == 3
    assert "bullpen up" in result.out
    assert "does not run" in empty.ok("down").out


def test_in_a_home_with_a_long_path_the_services_start_all_the_same(bullpen: Bullpen) -> None:
    deep: Path = bullpen.home / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    (bullpen.home / "bullpen.db").rename(deep / "bullpen.db")
    there = Bullpen(deep, bullpen.environ)
    try:
        there.ok("up")
        assert there.ok("send", "hello").out.splitlines()[0] == "@assistant: hello"
    finally:
        there("down")


def test_sockets_are_not_put_where_others_can_write(bullpen: Bullpen) -> None:
    run = bullpen.home / "run"
    run.mkdir(exist_ok=True)
    run.chmod(0o777)
    refused = bullpen("up")
    assert refused.status == 1
    assert "can be written by others" in refused.err
    assert bullpen("status").status == 3
