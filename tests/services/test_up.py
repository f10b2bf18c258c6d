"""bullpen up, status and down: the services as a person starts, sees and stops them."""

from __future__ import annotations

import os
import socket
import stat
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from bullpen.cli.up import HTTP_SECONDS
from bullpen.core.maintenance.jobs import JOBS
from bullpen.core.settings import Settings
from bullpen.ops.services.launch import lock_holders, service_lock
from bullpen.ops.services.supervisor import Supervisor, wait_for_exit
from tests.cli.command import Bullpen
from tests.cli.warm import FIRST
from tests.processor.working import eventually
from tests.services.running import pids, services_of, supervisor

pytestmark = pytest.mark.slow

LONG = 150


def test_up_send_status_down(empty: Bullpen) -> None:
    started = empty.ok("up")
    assert "Created the database." in started.err
    assert "Created agent @assistant (provider: echo)." in started.err
    assert "running" in started.out
    assert "bullpen send" in started.out
    url = f"http://127.0.0.1:{empty.environ['BULLPEN_API_PORT']}"
    assert f"API: {url}" in started.out
    with urllib.request.urlopen(f"{url}/readyz", timeout=30) as answer:
        assert answer.status == 200
    services = empty.ok("status", "--json").json["services"]
    assert {each["name"]: each["state"] for each in services} == {
        "api": "RUNNING",
        "guard": "RUNNING",
        "processor": "RUNNING",
        "scheduler": "RUNNING",
    }
    before = pids(empty)
    for pid in before.values():
        assert psutil.pid_exists(pid)
        assert str(pid) in empty.ok("status").out
    assert empty.ok("send", "hello").out.splitlines()[0] == "@assistant: hello"

    again = empty.ok("up")
    assert "already running" in again.out
    assert again.err == ""
    assert f"API: {url}" in again.out
    assert pids(empty) == before

    family = [psutil.Process(pid) for pid in (supervisor(empty), *before.values())]
    assert "Stopped" in empty.ok("down").out
    assert wait_for_exit(family, 0) == []
    stopped = empty("status", "--json")
    assert stopped.status == 3
    assert stopped.json["services"] == []
    assert "not running" in empty.ok("down").out
    for name in ("api", "processor", "scheduler"):
        log = (empty.home / "logs" / f"{name}.log").read_text()
        assert "has stopped" in log
        assert "Traceback" not in log


def test_the_log_of_the_api_names_its_address(at_work: Bullpen) -> None:
    port = at_work.environ["BULLPEN_API_PORT"]
    log = (at_work.home / "logs" / "api.log").read_text()
    assert f"listening on http://127.0.0.1:{port}" in log
    assert "Listening at:  (" not in log


def test_status_shows_what_keeps_the_store_in_order(at_work: Bullpen) -> None:
    def ran() -> bool:
        found = at_work("status", "--json").json["system_agents"]
        assert [each["name"] for each in found] == [each.name for each in JOBS]
        return all(each["last_run_at"] and each["last_error"] is None for each in found)

    def shown() -> bool:
        lines = at_work("status", "--all").out.splitlines()
        line = {each.split()[0]: each for each in lines if each}
        leases = ("ago", " ms ", "0 expired claims released")
        return all(each in line["leases"] for each in leases) and (
            "1 scheduler; 0 lost" in line["workers"]
        )

    eventually(ran, "every loop ran", LONG)
    eventually(shown, "what each said", LONG)  # one that runs just now says only that
    all_well = f"{len(JOBS)} ok, last run "
    eventually(lambda: all_well in at_work("status").out, "all are well", LONG)


def test_status_shows_the_services_while_the_database_cannot_be_reached(at_work: Bullpen) -> None:
    away = replace(
        at_work,
        environ={
            **at_work.environ,
            "BULLPEN_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
        },
    )
    assert away("status", "--json").json["system_agents"] is None
    shown = away.ok("status").out
    assert "scheduler  running" in shown
    assert "The database cannot be read: " in shown


def test_where_the_port_is_taken_up_says_so_and_messages_are_answered(empty: Bullpen) -> None:
    port = empty.environ["BULLPEN_API_PORT"]
    with socket.create_server(("127.0.0.1", int(port))):
        started = empty("up")
        assert started.status == 3
        assert "api did not start" in started.err
        assert f"port {port} on 127.0.0.1 is in use by another program" in started.err
        assert "api_port" in started.err
        assert "API: " not in started.out
        assert empty.ok("send", "hello").out.splitlines()[0] == "@assistant: hello"
        assert empty("status").status == 3


def test_what_up_makes_is_the_owners_alone(at_work: Bullpen) -> None:
    home = at_work.home
    for name in (".", "run", "logs"):
        assert stat.S_IMODE((home / name).stat().st_mode) == 0o700
    for name in ("bullpen.db", "bullpen.db-wal", "run/supervisor.key", "token"):
        assert stat.S_IMODE((home / name).stat().st_mode) == 0o600, name
    assert stat.S_IMODE((home / "run" / "supervisor.sock").stat().st_mode) == 0o600


def test_status_and_down_where_nothing_was_ever_started(empty: Bullpen) -> None:
    result = empty("status")
    assert result.status == 3
    assert "bullpen up" in result.out
    assert "not running" in empty.ok("down").out


def test_in_a_home_with_a_long_path_the_services_start_all_the_same(empty: Bullpen) -> None:
    deep: Path = empty.home / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    there = Bullpen(deep, empty.environ)
    there.ok("up")
    assert there.ok("send", "hello").out.splitlines()[0] == "@assistant: hello"
    there.ok("down")


def test_sockets_are_not_put_where_others_can_write(empty: Bullpen) -> None:
    run = empty.home / "run"
    run.mkdir(exist_ok=True)
    run.chmod(0o777)
    refused = empty("up")
    assert refused.status == 1
    assert "is writable by other users" in refused.err
    assert empty("status").status == 3


def test_two_that_start_it_at_the_same_moment_start_it_once(empty: Bullpen) -> None:
    with ThreadPoolExecutor(2) as both:
        first, second = (both.submit(empty.ok, "up") for _ in range(2))
        outs = [first.result().out, second.result().out]
    assert sum("already running" in out for out in outs) == 1
    started = sorted(pids(empty))
    eventually(lambda: services_of(empty.home) == started, "one of each", LONG)


def test_the_supervisor_complains_of_nothing(empty: Bullpen) -> None:
    empty.ok("up")
    empty.ok("down")
    log = (empty.home / "logs" / "supervisord.log").read_text()
    assert " CRIT " not in log
    assert " WARN " not in log
    assert (empty.home / "logs" / "supervisord.out").read_text() == ""
    stopped = [
        line.split("stopped: ")[1].split()[0] for line in log.splitlines() if "stopped: " in line
    ]
    assert stopped == ["api", "scheduler", "processor", "guard"]
    assert spawned(empty) == stopped[::-1]


def test_who_does_not_know_the_password_steers_nothing(at_work: Bullpen) -> None:
    key = at_work.home / "run" / "supervisor.key"
    secret = key.read_text()
    key.write_text("wrong")
    assert at_work("status").status == 3
    key.write_text(secret)
    assert secret not in "".join(path.read_text() for path in (at_work.home / "logs").iterdir())
    for pid in pids(at_work).values():
        assert secret not in str(psutil.Process(pid).environ())


def test_up_starts_what_was_stopped_or_gave_up(at_work: Bullpen) -> None:
    Supervisor(Settings(home=at_work.home)).stop("scheduler", LONG)
    shown = at_work("status")
    assert shown.status == 3
    assert "scheduler is down" in shown.out
    again = at_work.ok("up")
    assert "already running" in again.out
    assert at_work.ok("status").status == 0


def test_an_api_that_is_slow_to_answer_is_not_started_anew(at_work: Bullpen) -> None:
    before = pids(at_work)
    api = psutil.Process(before["api"])
    family = [api, *api.children(recursive=True)]
    for each in family:
        each.suspend()
    with ThreadPoolExecutor(1) as one:
        again = one.submit(at_work.ok, "up")
        with pytest.raises(TimeoutError):
            again.result(HTTP_SECONDS + 1)
        for each in family:
            each.resume()
        assert "already running" in again.result().out
    assert pids(at_work) == before


def test_restart_of_one_leaves_the_others(at_work: Bullpen) -> None:
    before = pids(at_work)
    at_work.ok("restart", "scheduler", "processor")
    after = pids(at_work)
    assert {name for name in before if before[name] != after[name]} == {"scheduler", "processor"}
    unknown = at_work("restart", "nonsense")
    assert unknown.status == 2
    assert "api, guard, processor, scheduler" in unknown.err
    at_work.ok("restart")
    assert not set(pids(at_work).values()) & set(after.values())


def test_a_service_of_what_does_not_run_cannot_be_restarted(empty: Bullpen) -> None:
    assert empty("restart", "api").status == 1


def test_an_agent_neither_starts_nor_stops_anything(empty: Bullpen) -> None:
    for command in (("up",), ("down",), ("restart",), ("logs",), ("run", "processor")):
        refused = empty(*command, BULLPEN_RUN="coder.0")
        assert refused.status == 1
        assert "@coder may not" in refused.err


def test_a_supervisor_with_the_old_name_of_the_guard_goes_on_until_it_is_restarted(
    empty: Bullpen,
) -> None:
    old = replace(empty, environ={**empty.environ, FIRST: "tests.services.before_rename"})
    old.ok("up")
    assert spawned(empty)[0] == "minder"
    before = pids(empty)
    assert set(before) == {"api", "guard", "processor", "scheduler"}
    again = empty.ok("up")
    assert "already running" in again.out
    assert pids(empty) == before
    for name in ("guard", "minder"):
        empty.ok("restart", name)
        after = pids(empty)
        assert after.pop("guard") != before.pop("guard")
        assert after == before
        before = pids(empty)
    assert "guard" not in spawned(empty)
    empty.ok("restart")
    assert spawned(empty)[-4] == "guard"
    assert set(pids(empty)) == set(before)
    empty.ok("down")
    assert services_of(empty.home) == []


def test_a_process_that_holds_the_lock_of_the_old_name_is_found(empty: Bullpen) -> None:
    settings = Settings.load(empty.environment())
    with service_lock(settings, "minder"):
        assert lock_holders(settings) == {"guard": os.getpid()}


def spawned(bullpen: Bullpen) -> list[str]:
    """The programs that the supervisor started, as it names them."""
    log = (bullpen.home / "logs" / "supervisord.log").read_text()
    return [line.split("'")[1] for line in log.splitlines() if "spawned: " in line]
