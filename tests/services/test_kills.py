"""A service or the supervisor is killed: what comes back, and that nothing is lost or twice."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack

import psutil
import pytest

from bullpen.core.errors import RunsAlready
from bullpen.core.settings import Settings
from bullpen.ops.services.crash_guard import (
    EXITED,
    FATAL,
    MAX_CRASHES,
    MAX_PAUSE_SECONDS,
    PAUSE_SECONDS,
    STOPPED,
    TICK,
    CrashGuard,
)
from bullpen.ops.services.launch import PAUSES_FILE, service_lock, start_lock
from bullpen.ops.services.supervisor import Supervisor, wait_for_exit
from tests.cli.command import PROGRAM, Bullpen
from tests.processor.working import eventually
from tests.services.running import begun_at, of_home, pids, services_of, supervisor

pytestmark = pytest.mark.slow

ALL = ["api", "guard", "processor", "scheduler"]
BACK_SECONDS = 3.0
LONG = 150
PATIENCE = 5
"""So often it may be too slow: others use this machine as well."""


def comes_back(bullpen: Bullpen, name: str) -> float:
    """Kill it; the seconds until another process of it began."""
    all_run(bullpen)
    old = pids(bullpen)[name]
    killed = time.clock_gettime(time.CLOCK_BOOTTIME)
    os.kill(old, signal.SIGKILL)
    all_run(bullpen, name, old)
    return begun_at(pids(bullpen)[name]) - killed


@pytest.mark.parametrize("name", ALL)
def test_kill_9_of_a_service_and_it_is_back_within_three_seconds(
    at_work: Bullpen, name: str
) -> None:
    assert any(comes_back(at_work, name) <= BACK_SECONDS for _ in range(PATIENCE))
    one_of_each(at_work)


def test_kill_9_of_the_api_with_open_connections_and_it_is_back_within_seconds(
    at_work: Bullpen,
) -> None:
    """What its workers still do for their clients holds neither the lock nor the port."""
    at_work.ok("agent", "add", "outside", "--provider", "http")
    port = int(at_work.environ["BULLPEN_API_PORT"])
    token = (at_work.home / "token").read_text().strip()
    body = json.dumps({"agent": "outside", "wait": 60})
    claim = (
        f"POST /api/queue/claim HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
        f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n{body}"
    )
    idle = f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"
    for _ in range(2):
        all_run(at_work)
        eventually(lambda: answers(port), "it serves", LONG)
        old = pids(at_work)["api"]
        with ExitStack() as open_ones:
            for request in (claim, idle, idle[:10], ""):
                for _ in range(4):
                    peer = socket.create_connection(("127.0.0.1", port))
                    open_ones.enter_context(peer).sendall(request.encode())
            eventually(lambda: answers(port), "it serves", LONG)
            os.kill(old, signal.SIGKILL)
            killed = time.monotonic()
            eventually(lambda: state_of(at_work, "api")[0] != old, "a new one", LONG)  # noqa: B023
            eventually(lambda: answers(port), "it serves again", LONG)
            assert time.monotonic() - killed < BACK_SECONDS * PATIENCE
    log = (at_work.home / "logs" / "api.log").read_text()
    assert "already running" not in log
    assert "is taken" not in log


@pytest.fixture
def unguarded(at_work: Bullpen) -> Iterator[Bullpen]:
    """Services whose own guard is stopped, for tests that are the guard: a home has one."""
    all_run(at_work)
    settings = Settings.load(at_work.environment())
    Supervisor(settings).stop("guard", LONG)
    (settings.run / PAUSES_FILE).unlink(missing_ok=True)
    yield at_work
    (settings.run / PAUSES_FILE).unlink(missing_ok=True)
    Supervisor(settings).start("guard", LONG)


def answers(port: int) -> bool:
    """Whether the API answers a new connection."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def state_of(bullpen: Bullpen, name: str) -> tuple[int, str]:
    """The process and the state of a service."""
    service = Supervisor(Settings.load(bullpen.environment())).service(name)
    return service["pid"], service["state"]


def test_kill_9_of_the_processor_in_the_middle_of_a_run_loses_nothing(empty: Bullpen) -> None:
    # A run that this machine does not let renew its lease is one more that may begin anew.
    empty.ok("up", BULLPEN_LEASE_SECONDS="3", BULLPEN_MAX_CRASHES="100")
    empty.ok("agent", "lane", "assistant", "--batching", "one")
    sent = [
        empty.ok("send", text, "--no-wait").out.strip()
        for text in ("!sleep 2\n!say one", "!say two")
    ]
    eventually(lambda: counts(empty)["processing"] > 0, "a run", LONG)
    os.kill(pids(empty)["processor"], signal.SIGKILL)
    eventually(lambda: counts(empty) == {"pending": 0, "processing": 0, "dead": 0}, "rest", LONG)
    answers = empty.ok("response", "list", "--json").json
    assert sorted(each["message_id"] for each in answers) == sorted(sent)


def test_kill_9_of_the_supervisor_then_up_gives_one_of_each_service(empty: Bullpen) -> None:
    """The old processor is in the middle of a run, which it gives back within its grace."""
    empty.ok("up", BULLPEN_GRACE_SECONDS="4")
    message = empty.ok("send", "!sleep 600", "--no-wait").out.strip()
    eventually(lambda: counts(empty)["processing"] == 1, "a run", LONG)
    old = set(pids(empty).values())
    processor = psutil.Process(pids(empty)["processor"])
    kill_supervisor(empty)
    processor.suspend()  # so that it is there still when it is looked for
    said = empty.home / "up.err"
    with said.open("wb") as err:
        environ = empty.environment(BULLPEN_GRACE_SECONDS=str(LONG))
        again = subprocess.Popen([*PROGRAM, "up"], env=environ, stdout=err, stderr=err)

    def told() -> str:  # whoever is first: the person's command, or the recovery
        return said.read_text() + (empty.home / "logs" / "guard.log").read_text()

    eventually(lambda: f"processor ({processor.pid})" in told(), "it is found", LONG)
    processor.resume()
    assert again.wait(LONG) == 0
    assert "Killing" not in told()
    one_of_each(empty)
    assert not old & {each.pid for each in of_home(empty.home)}
    eventually(lambda: counts(empty)["processing"] == 1, "the run again", LONG)
    found = empty.ok("queue", "show", message, "--json").json
    assert found["message"]["retry_count"] == found["message"]["crash_count"] == 0


@pytest.mark.parametrize("verb", ["up", "down", "status", "restart"])
def test_a_supervisor_that_stands_still_is_not_taken_for_gone(at_work: Bullpen, verb: str) -> None:
    all_run(at_work)
    before = pids(at_work)
    still = psutil.Process(supervisor(at_work))
    still.suspend()
    try:
        done = at_work(verb, TESTS_FIRST="tests.services.hurried")
    finally:
        still.resume()
    assert (done.status, "does not answer" in done.err) == (75, True), done
    assert pids(at_work) == before


def test_the_supervisor_is_started_again_each_time_it_is_killed(up: Bullpen) -> None:
    for _ in range(2):
        old = supervisor(up)
        kill_supervisor(up)
        eventually(lambda: is_another(up, old), "another one", LONG)  # noqa: B023
        one_of_each(up)
    assert up.ok("send", "hello").out.splitlines()[0] == "@assistant: hello"
    up.ok("down")
    assert of_home(up.home) == []


def test_down_after_the_supervisor_was_killed_leaves_nothing_that_starts_it_again(
    up: Bullpen,
) -> None:
    kill_supervisor(up)
    up.ok("down")
    eventually(lambda: of_home(up.home) == [], "all have ended", LONG)
    assert "not running" in up.ok("down").out


def test_what_does_not_end_by_itself_is_killed_by_the_next_up(empty: Bullpen) -> None:
    empty.ok("up", BULLPEN_GRACE_SECONDS="900")
    empty.ok("send", "!sleep 900", "--no-wait")
    eventually(lambda: counts(empty)["processing"] == 1, "a run", LONG)
    stuck = psutil.Process(pids(empty)["processor"])
    kill_supervisor(empty)
    again = empty.ok("up", BULLPEN_GRACE_SECONDS="1")
    assert f"processor ({stuck.pid})" in again.err
    assert "Killing" in again.err
    assert wait_for_exit([stuck], LONG) == []
    one_of_each(empty)


def test_a_second_under_the_supervisor_is_refused_and_one_of_a_persons_own_is_not(
    at_work: Bullpen,
) -> None:
    all_run(at_work)
    for name in ("processor", "scheduler", "api"):
        running = rf"already running \(process {pids(at_work)[name]}\)"
        with (
            pytest.raises(RunsAlready, match=running),
            service_lock(Settings(home=at_work.home), name),
        ):
            pass
    said = at_work.home / "own.out"
    with said.open("wb") as out:
        own = subprocess.Popen(
            [*PROGRAM, "run", "processor"], env=at_work.environment(), stderr=out
        )
    eventually(lambda: "is ready" in said.read_text(), "both work", LONG)
    at_work.ok("restart")
    assert own.poll() is None  # what a person started is his to stop
    own.terminate()
    assert own.wait(LONG) == 0


def test_a_crash_loop_is_stopped_and_told(up: Bullpen) -> None:
    old = 0
    for _ in range(MAX_CRASHES):  # each time it has run for long enough to count as started
        all_run(up, "scheduler", old)
        old = pids(up)["scheduler"]
        os.kill(old, signal.SIGKILL)
    text = f"The service scheduler crashed {MAX_CRASHES} times"
    eventually(lambda: text in up.ok("response", "read").out, "it is stopped and told", LONG)
    shown = up("status")
    assert shown.status == 3
    assert "scheduler is down" in shown.out
    assert "bullpen restart scheduler" in shown.out
    assert "crashed" in (up.home / "logs" / "guard.log").read_text()
    assert "stopped" in shown.out
    up.ok("restart", "scheduler")
    assert up.ok("status").status == 0


def test_a_crash_loop_is_not_stopped_while_a_person_starts_the_services(unguarded: Bullpen) -> None:
    eventually(lambda: state_of(unguarded, "scheduler")[1] == "RUNNING", "it runs", LONG)
    before = pids(unguarded)
    settings = Settings.load(unguarded.environment())
    guard = CrashGuard(settings)
    with start_lock(settings):  # as `bullpen up` holds it
        for second in range(MAX_CRASHES):
            guard.handle(EXITED, "scheduler", second)
    assert pids(unguarded) == before
    assert "scheduler" not in unguarded.ok("response", "read").out
    for second in range(MAX_CRASHES):
        guard.handle(EXITED, "scheduler", second)
    assert "scheduler is down" in unguarded("status").out
    unguarded.ok("restart", "scheduler")


def test_a_crash_loop_that_cannot_be_stopped_is_told_as_such(unguarded: Bullpen) -> None:
    eventually(lambda: state_of(unguarded, "scheduler")[1] == "RUNNING", "it runs", LONG)
    before = pids(unguarded)
    guard = CrashGuard(Settings.load(unguarded.environment()))
    key = unguarded.home / "run" / "supervisor.key"
    secret = key.read_text()
    key.write_text("wrong")
    for second in range(MAX_CRASHES):
        guard.handle(EXITED, "scheduler", second)
    key.write_text(secret)
    text = f"scheduler crashed {MAX_CRASHES} times in 10 minutes and could not be stopped"
    assert text in unguarded.ok("response", "read").out
    assert pids(unguarded) == before


def test_a_service_that_did_not_start_is_started_again_after_a_pause(unguarded: Bullpen) -> None:
    """Though the guard that saw it fail was killed as well."""
    eventually(lambda: state_of(unguarded, "scheduler")[1] == "RUNNING", "it runs", LONG)
    settings = Settings.load(unguarded.environment())
    Supervisor(settings).stop("scheduler", LONG)
    CrashGuard(settings).handle(FATAL, "scheduler", 0.0)
    CrashGuard(settings).handle(TICK, "", PAUSE_SECONDS - 1)
    assert state_of(unguarded, "scheduler")[1] == "STOPPED"
    CrashGuard(settings).handle(TICK, "", PAUSE_SECONDS)
    eventually(lambda: state_of(unguarded, "scheduler")[1] == "RUNNING", "it runs", LONG)


def test_a_crash_loop_is_paused_and_what_a_person_stops_stays_stopped(unguarded: Bullpen) -> None:
    eventually(lambda: state_of(unguarded, "scheduler")[1] == "RUNNING", "it runs", LONG)
    settings = Settings.load(unguarded.environment())
    guard = CrashGuard(settings)
    for second in range(MAX_CRASHES):
        guard.handle(EXITED, "scheduler", second)
    assert state_of(unguarded, "scheduler")[1] == "STOPPED"
    guard = CrashGuard(settings)  # another one, after the first was killed
    guard.handle(STOPPED, "scheduler", MAX_CRASHES)
    guard.handle(TICK, "", MAX_CRASHES + PAUSE_SECONDS)
    eventually(lambda: state_of(unguarded, "scheduler")[1] == "RUNNING", "it runs", LONG)
    Supervisor(settings).stop("scheduler", LONG)
    guard.handle(STOPPED, "scheduler", 100.0)
    guard.handle(TICK, "", 100.0 + 10 * MAX_PAUSE_SECONDS)
    assert state_of(unguarded, "scheduler")[1] == "STOPPED"
    unguarded.ok("restart", "scheduler")


def test_a_service_that_gives_up_starting_is_told(empty: Bullpen) -> None:
    (empty.home / "settings.toml").write_text("max_runs = 'many'\n")
    assert empty("up").status == 3
    text = "The service processor"
    eventually(lambda: text in empty.ok("response", "read").out, "it is told", LONG)


def test_down_during_a_long_run_releases_it_uncounted_and_leaves_no_child(empty: Bullpen) -> None:
    empty.ok("up", BULLPEN_GRACE_SECONDS="3")
    message = empty.ok("send", "!sleep 600", "--no-wait").out.strip()
    eventually(lambda: counts(empty)["processing"] == 1, "a run", LONG)
    begun = time.monotonic()
    empty.ok("down", BULLPEN_GRACE_SECONDS="3")
    assert time.monotonic() - begun < 3 + 30
    assert of_home(empty.home) == []
    assert counts(empty) == {"pending": 1, "processing": 0, "dead": 0}
    found = empty.ok("queue", "show", message, "--json").json["message"]
    assert (found["status"], found["retry_count"], found["crash_count"]) == ("pending", 0, 0)


def test_up_in_the_foreground_stops_all_with_sigterm(empty: Bullpen) -> None:
    process = foreground(empty)
    all_run(empty)
    assert empty.ok("send", "hello").out.splitlines()[0] == "@assistant: hello"
    taken = empty("up", "--foreground")
    assert taken.status == 1
    assert "already running" in taken.err
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=LONG)
    assert process.returncode == 0
    assert "processor | " in out.decode()
    assert "Stopped Bullpen." in err.decode()
    assert of_home(empty.home) == []


@pytest.mark.parametrize("victim", ["supervisor", "foreground"])
def test_in_the_foreground_whoever_is_killed_takes_the_rest_along(
    empty: Bullpen, victim: str
) -> None:
    process = foreground(empty)
    all_run(empty)
    os.kill(supervisor(empty) if victim == "supervisor" else process.pid, signal.SIGKILL)
    process.communicate(timeout=LONG)
    assert process.returncode == (1 if victim == "supervisor" else -signal.SIGKILL)
    eventually(lambda: of_home(empty.home) == [], "all have ended", LONG)


def test_down_ends_up_in_the_foreground_without_an_error(empty: Bullpen) -> None:
    process = foreground(empty)
    all_run(empty)
    empty.ok("down")
    _, err = process.communicate(timeout=LONG)
    assert process.returncode == 0  # systemd would start it again after any other status
    assert "Stopped Bullpen." in err.decode()
    assert of_home(empty.home) == []


def foreground(empty: Bullpen) -> subprocess.Popen[bytes]:
    """`bullpen up --foreground`, as systemd starts it."""
    return subprocess.Popen(
        [*PROGRAM, "up", "--foreground"],
        env=empty.environment(BULLPEN_GRACE_SECONDS="2"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def is_another(bullpen: Bullpen, old: int) -> bool:
    """Whether another supervisor has written down its process."""
    try:
        return supervisor(bullpen) != old
    except (FileNotFoundError, ValueError):
        return False  # it is being written


def kill_supervisor(bullpen: Bullpen) -> None:
    """Kill it, and wait until the system has told its services."""
    found = psutil.Process(supervisor(bullpen))
    found.kill()
    assert wait_for_exit([found], LONG) == []


def all_run(bullpen: Bullpen, name: str = "", old: int = 0) -> None:
    """Wait until all services run, this one in another process."""

    def run() -> bool:
        found = bullpen("status", "--json").json["services"]
        well = {each["name"]: each["pid"] for each in found if each["state"] == "RUNNING"}
        return sorted(well) == ALL and well.get(name) != old

    eventually(run, "all run", LONG)


def one_of_each(bullpen: Bullpen) -> None:
    """Wait until no service has a process more; what a killed one began ends by itself."""
    all_run(bullpen)
    eventually(lambda: services_of(bullpen.home) == ALL, "one of each service", LONG)


def counts(bullpen: Bullpen) -> dict[str, int]:
    """The queue in numbers."""
    found = bullpen.ok("queue", "status", "--json").json
    return {name: found[name] for name in ("pending", "processing", "dead")}
