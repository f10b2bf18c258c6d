"""A service or the supervisor is killed: what comes back, and that nothing is lost or twice."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import psutil
import pytest

from bullpen.core.errors import RunsAlready
from bullpen.core.services.crashes import MOST
from bullpen.core.services.lock import service_lock
from bullpen.core.settings import Settings
from tests.cli.command import PROGRAM, Bullpen
from tests.processor.working import eventually
from tests.services.running import of_home, pids, services_of, supervisor

pytestmark = pytest.mark.slow

ALL = ["api", "minder", "processor", "scheduler"]
BACK_SECONDS = 3.0
PATIENCE = 5
"""So often it may be too slow: others use this machine as well."""


def comes_back(up: Bullpen, name: str) -> float:
    """Kill it; the seconds until another process of it runs."""
    old = pids(up)[name]
    begun = time.monotonic()
    os.kill(old, signal.SIGKILL)
    eventually(lambda: pids(up).get(name, 0) not in (0, old), f"{name} is back")
    return time.monotonic() - begun


@pytest.mark.parametrize("name", ALL)
def test_kill_9_of_a_service_and_it_is_back_within_three_seconds(up: Bullpen, name: str) -> None:
    quick = False
    for _ in range(PATIENCE):
        eventually(lambda: up("status").status == 0, "all run")
        quick = quick or comes_back(up, name) <= BACK_SECONDS
        if quick:
            break
    assert quick
    eventually(lambda: up("status").status == 0, "all run")
    assert services_of(up.home) == ALL
    up.ok("down")


def test_kill_9_of_the_processor_in_the_middle_of_a_run_loses_nothing(empty: Bullpen) -> None:
    empty.ok("up", BULLPEN_LEASE_SECONDS="3")
    up = empty
    up.ok("agent", "lane", "assistant", "--batching", "one")
    sent = [
        up.ok("send", text, "--no-wait").out.strip() for text in ("!sleep 2\n!say one", "!say two")
    ]
    eventually(lambda: counts(up)["processing"] > 0, "a run")
    os.kill(pids(up)["processor"], signal.SIGKILL)
    eventually(lambda: counts(up) == {"pending": 0, "processing": 0, "dead": 0}, "rest", 150)
    answers = up.ok("response", "list", "--json").json
    assert sorted(each["message_id"] for each in answers) == sorted(sent)
    up.ok("down")


def test_kill_9_of_the_supervisor_then_up_gives_one_of_each_service(up: Bullpen) -> None:
    """The old processor is in the middle of a run, which it gives back within its grace."""
    restarted = Bullpen(up.home, {**up.environ, "BULLPEN_GRACE_SECONDS": "2"})
    restarted.ok("restart")
    message = restarted.ok("send", "!sleep 600", "--no-wait").out.strip()
    eventually(lambda: counts(up)["processing"] == 1, "a run")
    old = set(pids(up).values())
    os.kill(supervisor(up), signal.SIGKILL)
    again = restarted.ok("up")
    assert "processor" in again.err
    assert services_of(up.home) == ALL
    assert not old & {each.pid for each in of_home(up.home)}
    eventually(lambda: counts(up)["processing"] == 1, "the run again")
    found = up.ok("queue", "show", message, "--json").json
    assert found["message"]["retry_count"] == found["message"]["crash_count"] == 0
    restarted.ok("down")
    assert of_home(up.home) == []


def test_services_end_with_their_supervisor_without_another_up(up: Bullpen) -> None:
    os.kill(supervisor(up), signal.SIGKILL)
    eventually(lambda: of_home(up.home) == [], "all have ended")
    assert "does not run" in up.ok("down").out


def test_what_does_not_end_by_itself_is_killed_by_the_next_up(up: Bullpen) -> None:
    stuck = pids(up)["scheduler"]
    os.kill(stuck, signal.SIGSTOP)
    os.kill(supervisor(up), signal.SIGKILL)
    again = up.ok("up", BULLPEN_GRACE_SECONDS="1")
    assert "killed" in again.err
    assert not psutil.pid_exists(stuck) or psutil.Process(stuck).status() == psutil.STATUS_ZOMBIE
    assert services_of(up.home) == ALL
    up.ok("down")


def test_a_second_under_the_supervisor_is_refused_and_one_of_a_persons_own_is_not(
    up: Bullpen,
) -> None:
    for name in ("processor", "scheduler", "api"):
        running = f"runs already, as process {pids(up)[name]}"
        with (
            pytest.raises(RunsAlready, match=running),
            service_lock(Settings(home=up.home), name),
        ):
            pass
    said = up.home / "own.out"
    with said.open("wb") as out:
        own = subprocess.Popen([*PROGRAM, "run", "processor"], env=up.environment(), stderr=out)
    eventually(lambda: "is ready" in said.read_text(), "both work")
    up.ok("restart")
    assert own.poll() is None  # what a person started is his to stop
    own.terminate()
    assert own.wait(60) == 0
    up.ok("down")


def test_a_crash_loop_is_stopped_and_told(up: Bullpen) -> None:
    old = 0
    for _ in range(MOST):  # each time it has run for long enough to count as started
        eventually(lambda old=old: state(up, "scheduler", old) == "RUNNING", "it is back")  # type: ignore[misc]
        old = pids(up)["scheduler"]
        os.kill(old, signal.SIGKILL)
    eventually(lambda: "STOPPED" in up("status").out, "it is stopped")
    shown = up("status")
    assert shown.status == 3
    assert "scheduler does not run" in shown.out
    assert "bullpen restart scheduler" in shown.out
    told = up.ok("response", "read").out
    assert f"The service scheduler crashed {MOST} times" in told
    assert "crashed" in (up.home / "logs" / "minder.log").read_text()
    up.ok("restart", "scheduler")
    assert up.ok("status").status == 0
    up.ok("down")


def test_a_service_that_gives_up_starting_is_told(empty: Bullpen) -> None:
    (empty.home / "settings.toml").write_text("max_runs = 'many'\n")
    assert empty("up").status == 3
    eventually(
        lambda: "The service processor" in empty.ok("response", "read").out, "it is told", 120
    )
    empty.ok("down")


def test_down_during_a_long_run_releases_it_uncounted_and_leaves_no_child(empty: Bullpen) -> None:
    empty.ok("up", BULLPEN_GRACE_SECONDS="3")
    message = empty.ok("send", "!sleep 600", "--no-wait").out.strip()
    eventually(lambda: counts(empty)["processing"] == 1, "a run")
    begun = time.monotonic()
    empty.ok("down", BULLPEN_GRACE_SECONDS="3")
    assert time.monotonic() - begun < 3 + 30
    assert of_home(empty.home) == []
    assert counts(empty) == {"pending": 1, "processing": 0, "dead": 0}
    found = empty.ok("queue", "show", message, "--json").json["message"]
    assert (found["status"], found["retry_count"], found["crash_count"]) == ("pending", 0, 0)


def test_up_in_the_foreground_stops_all_with_sigterm(empty: Bullpen) -> None:
    process = foreground(empty)
    eventually(lambda: empty("status").status == 0, "all run", 60)
    assert empty.ok("send", "hello").out.splitlines()[0] == "@assistant: hello"
    taken = empty("up", "--foreground")
    assert taken.status == 1
    assert "runs already" in taken.err
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=90)
    assert process.returncode == 0
    assert "processor | " in out.decode()
    assert "Bullpen has stopped." in err.decode()
    assert of_home(empty.home) == []


@pytest.mark.parametrize("victim", ["supervisor", "foreground"])
def test_in_the_foreground_whoever_is_killed_takes_the_rest_along(
    empty: Bullpen, victim: str
) -> None:
    process = foreground(empty)
    eventually(lambda: empty("status").status == 0, "all run", 60)
    os.kill(supervisor(empty) if victim == "supervisor" else process.pid, signal.SIGKILL)
    process.communicate(timeout=90)
    assert process.returncode == (1 if victim == "supervisor" else -signal.SIGKILL)
    eventually(lambda: of_home(empty.home) == [], "all have ended", 60)


def foreground(empty: Bullpen) -> subprocess.Popen[bytes]:
    """`bullpen up --foreground`, as systemd starts it."""
    return subprocess.Popen(
        [*PROGRAM, "up", "--foreground"],
        env=empty.environment(BULLPEN_GRACE_SECONDS="2"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def state(bullpen: Bullpen, name: str, old: int) -> str:
    """A service's state; none as long as it is the old process."""
    found = bullpen("status", "--json").json["services"]
    return "".join(each["state"] for each in found if each["name"] == name and each["pid"] != old)


def counts(bullpen: Bullpen) -> dict[str, int]:
    """The queue in numbers."""
    found = bullpen.ok("queue", "status", "--json").json
    return {name: found[name] for name in ("pending", "processing", "dead")}
