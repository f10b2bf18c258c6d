"""bullpen up, status and down: the services as a person starts, sees and stops them."""

from __future__ import annotations

import stat
from pathlib import Path

import psutil
import pytest

from tests.cli.command import Bullpen

pytestmark = pytest.mark.slow


def pids(bullpen: Bullpen) -> list[int]:
    """The processes of the services that are up."""
    return [each["pid"] for each in bullpen("status", "--json").json["services"]]


def supervisor(bullpen: Bullpen) -> int:
    """The supervisor's process."""
    return int((bullpen.home / "run" / "supervisord.pid").read_text())


def test_up_send_status_down(bullpen: Bullpen) -> None:
    started = bullpen.ok("up")
    assert "RUNNING" in started.out
    assert "bullpen send" in started.out
    (service,) = bullpen.ok("status", "--json").json["services"]
    assert (service["name"], service["state"]) == ("processor", "RUNNING")
    assert psutil.pid_exists(service["pid"])
    assert str(service["pid"]) in bullpen.ok("status").out
    assert bullpen.ok("send", "hello").out.splitlines()[0] == "@assistant: hello"

    again = bullpen.ok("up")
    assert "runs already" in again.out
    assert pids(bullpen) == [service["pid"]]

    main = supervisor(bullpen)
    assert "stopped" in bullpen.ok("down").out
    psutil.wait_procs([psutil.Process(each) for each in (main,) if psutil.pid_exists(each)], 20)
    assert not psutil.pid_exists(service["pid"])
    stopped = bullpen("status", "--json")
    assert stopped.status == 3
    assert stopped.json == {"services": []}
    assert "does not run" in bullpen.ok("down").out
    log = (bullpen.home / "logs" / "processor.log").read_text()
    assert "has stopped" in log
    assert "Traceback" not in log


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
    (first,) = pids(bullpen)
    psutil.Process(first).kill()
    answer = bullpen.ok("send", "still there?", "--timeout", "100").out
    assert answer.splitlines()[0] == "@assistant: still there?"
    assert pids(bullpen) != [first]
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
    there = Bullpen(deep)
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
