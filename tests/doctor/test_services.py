"""Services: down, twice, silent, without a supervisor, or ended again and again."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psutil
import pytest

from tests.cli.command import Bullpen
from tests.doctor.examined import checks, fine, fixed, found, seen, settings_of
from tests.processor.working import SOON, child, eventually

pytestmark = pytest.mark.slow


@pytest.fixture
def up(bullpen: Bullpen) -> Iterator[Bullpen]:
    """A home at work."""
    bullpen.ok("up")
    yield bullpen
    bullpen("down")


def supervisor(bullpen: Bullpen) -> psutil.Process:
    """Its process."""
    return psutil.Process(int((bullpen.home / "run" / "supervisord.pid").read_text()))


def states(bullpen: Bullpen) -> dict[str, str]:
    """The states of the services."""
    found = bullpen("status", "--json").json["services"]
    return {each["name"]: each["state"] for each in found}


def pid(bullpen: Bullpen, name: str) -> int:
    """The process of a service; 0 while it has none."""
    found = bullpen("status", "--json").json["services"]
    return next((int(each["pid"]) for each in found if each["name"] == name), 0)


def stop(bullpen: Bullpen, name: str) -> None:
    """Stop one service, as the API does."""
    code = (
        "import os, sys; from bullpen.core.settings import Settings;"
        "from bullpen.core.services.supervisor import Supervisor;"
        "Supervisor(Settings.load(os.environ)).stop(sys.argv[1], 40)"
    )
    subprocess.run([sys.executable, "-c", code, name], env=bullpen.environment(), check=True)


def back(bullpen: Bullpen, before: int) -> bool:
    """Whether there is another process of the scheduler."""
    return pid(bullpen, "scheduler") not in (0, before)


@contextmanager
def halted(*processes: psutil.Process) -> Iterator[None]:
    """Stopped in their tracks for a while."""
    for each in processes:
        each.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for each in processes:
            each.send_signal(signal.SIGCONT)


def test_a_service_that_somebody_stopped(up: Bullpen) -> None:
    fine(up, "service.down")
    stop(up, "scheduler")
    assert "scheduler (stopped)" in found(up, "service.down", "warning")


def test_a_service_that_cannot_start_and_why(bullpen: Bullpen) -> None:
    port = int(bullpen.environ["BULLPEN_API_PORT"])
    with socket.create_server(("127.0.0.1", port)):
        bullpen("up")
        eventually(lambda: states(bullpen)["api"] in ("BACKOFF", "FATAL"), "it is down")
        assert "api (" in found(bullpen, "service.down", "critical")
        found(bullpen, "net.port_taken", "critical")
        assert bullpen("doctor").status == 1
    bullpen("down")


def test_the_api_of_this_home_has_its_port_and_another_home_has_not(up: Bullpen) -> None:
    fine(up, "net.port_taken")
    other = Bullpen(up.home / "other", up.environ)
    other.home.mkdir(mode=0o700)
    text = found(other, "net.port_taken", "critical")
    assert "the API of another home" in text


def test_a_service_that_is_killed_again_and_again(up: Bullpen) -> None:
    fine(up, "service.crash_loop")
    for _ in range(4):
        before = pid(up, "scheduler")
        os.kill(before, signal.SIGKILL)
        eventually(partial(back, up, before), "it is back")
    assert "scheduler" in found(up, "service.crash_loop", "warning")


def test_an_api_that_does_not_answer(up: Bullpen) -> None:
    fine(up, "service.api_silent")
    api = psutil.Process(pid(up, "api"))
    with halted(api, *api.children(recursive=True)):
        assert "does not answer" in found(up, "service.api_silent", "critical")


def test_a_supervisor_that_does_not_answer(up: Bullpen) -> None:
    with halted(supervisor(up)):
        all_ = checks(up)
        assert all_["service.supervisor"]["state"] == "found"
        assert all_["service.supervisor"]["severity"] == "critical"
        assert all_["service.stale_files"]["state"] == "ok"
        assert all_["service.leftovers"]["state"] == "ok"
    fine(up, "service.supervisor")


def test_two_of_one_service(up: Bullpen) -> None:
    fine(up, "service.double")
    (up.home / "run" / "scheduler.lock").unlink()
    with child(settings_of(up), "scheduler") as second:
        eventually(lambda: seen(up, "service.double")["state"] == "found", "the second is seen")
        text = found(up, "service.double", "warning")
    assert f"{second.pid}" in text
    assert f"{pid(up, 'scheduler')}" in text


def test_what_a_dead_supervisor_leaves_is_found_and_removed(up: Bullpen) -> None:
    fine(up, "service.stale_files")
    main = supervisor(up)
    family = [main, *main.children(recursive=True)]
    for each in family:
        each.kill()
    psutil.wait_procs(family, SOON)
    found(up, "service.supervisor", "info")
    found(up, "service.stale_files", "info")
    assert list((up.home / "run").glob("*.sock"))
    fixed(up, "service.stale_files")
    assert not list((up.home / "run").glob("*.sock"))
    up.ok("up")
    assert up.ok("send", "hello").out


@contextmanager
def left_behind(bullpen: Bullpen) -> Iterator[subprocess.Popen[bytes]]:
    """A processor that takes this process for its supervisor, which is none."""
    run = bullpen.home / "run"
    run.mkdir(mode=0o700, exist_ok=True)
    (run / "supervisord.pid").write_text(f"{os.getpid()}\n")
    with child(settings_of(bullpen), SUPERVISOR_PROCESS_NAME="processor") as process:
        eventually(lambda: (run / "processor.lock").exists(), "it has its lock")
        yield process


def test_a_service_without_a_supervisor_is_found_and_ended(bullpen: Bullpen) -> None:
    with left_behind(bullpen) as process:
        text = found(bullpen, "service.leftovers", "warning")
        assert f"process {process.pid}" in text
        fixed(bullpen, "service.leftovers")
        assert process.wait(SOON) is not None


def test_a_service_of_another_home_is_left_alone(bullpen: Bullpen) -> None:
    other = Bullpen(bullpen.home / "other", bullpen.environ)
    other.home.mkdir(mode=0o700)
    shutil.copy(bullpen.home / "bullpen.db", other.home / "bullpen.db")
    with left_behind(other) as process:
        fine(bullpen, "service.leftovers")
        fine(bullpen, "service.double")
        assert process.poll() is None


def test_a_directory_that_is_gone_while_services_write_to_it(up: Bullpen) -> None:
    fine(up, "fs.missing")
    shutil.rmtree(up.home / "logs")
    assert "logs" in found(up, "fs.missing", "warning")
    fixed(up, "fs.missing")
    assert (up.home / "logs").is_dir()


def test_settings_that_are_newer_than_the_services(up: Bullpen) -> None:
    fine(up, "settings.not_in_force")
    file: Path = up.home / "settings.toml"
    file.write_text("max_runs = 3\n")
    os.utime(file, (file.stat().st_atime, file.stat().st_mtime + 30))
    text = found(up, "settings.not_in_force", "info")
    assert "processor" in text
