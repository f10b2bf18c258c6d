"""Services: down, twice, silent, without a supervisor, or ended again and again."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from bullpen.ops.doctor.services import MAX_RESTARTS
from bullpen.ops.services.launch import lock_holders
from tests.cli.command import Bullpen
from tests.doctor.conftest import home
from tests.doctor.examined import (
    LONG,
    Entry,
    checks,
    fine,
    fixed,
    found,
    hurried,
    seen,
    settings_of,
)
from tests.processor.working import child, eventually
from tests.stores import Stores

pytestmark = pytest.mark.slow


@pytest.fixture
def up(bullpen: Bullpen) -> Bullpen:
    """A home at work."""
    bullpen.ok("up")
    return bullpen


@pytest.fixture(scope="module")
def at_work(stores: Stores) -> Iterator[Bullpen]:
    """A home at work, for tests that leave it as it is."""
    with home() as made:
        shutil.copy(stores.sqlite_template(), made.home / "bullpen.db")
        made.ok("up")
        yield made


def supervisor(bullpen: Bullpen) -> psutil.Process:
    """Its process."""
    return psutil.Process(int((bullpen.home / "run" / "supervisord.pid").read_text()))


def pid(bullpen: Bullpen, name: str, but: int = 0) -> int:
    """The process of a service, when it has one that is not this."""
    there: list[int] = []

    def has_one() -> bool:
        services = bullpen("status", "--json").json["services"]
        pids = {each["name"]: int(each["pid"]) for each in services}
        there.append(pids.get(name, 0))
        return there[-1] not in (0, but)

    eventually(has_one, f"{name} has a process")
    return there[-1]


def comes(bullpen: Bullpen, id_: str, severity: str) -> str:
    """What a check says as soon as it finds something of this severity."""
    said: list[Entry] = []

    def is_found() -> bool:
        said.append(seen(bullpen, id_))
        return (said[-1]["state"], said[-1]["severity"]) == ("found", severity)

    eventually(is_found, f"{id_} finds something", LONG)
    return str(said[-1]["text"])


def stop(bullpen: Bullpen, name: str) -> None:
    """Stop one service, as the API does."""
    code = (
        "import os, sys; from bullpen.core.settings import Settings;"
        "from bullpen.ops.services.supervisor import Supervisor;"
        "Supervisor(Settings.load(os.environ)).stop(sys.argv[1], 40)"
    )
    subprocess.run([sys.executable, "-c", code, name], env=bullpen.environment(), check=True)


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
        # Between two tries it is about to start, and not down.
        assert "api (" in comes(bullpen, "service.down", "critical")
        found(bullpen, "net.port_taken", "critical")
        assert bullpen("doctor").status == 1


def test_the_api_of_this_home_has_its_port_and_another_home_has_not(
    at_work: Bullpen, empty: Bullpen
) -> None:
    fine(at_work, "net.port_taken")
    other = Bullpen(empty.home, at_work.environ)
    text = found(other, "net.port_taken", "critical")
    assert "the API of another home" in text


def test_a_service_that_is_killed_again_and_again(up: Bullpen) -> None:
    fine(up, "service.crash_loop")
    before = pid(up, "scheduler")
    for _ in range(MAX_RESTARTS - 1):  # which its first start is one of
        os.kill(before, signal.SIGKILL)
        before = pid(up, "scheduler", before)
    assert "scheduler" in found(up, "service.crash_loop", "warning")


def test_an_api_that_does_not_answer(at_work: Bullpen) -> None:
    fine(at_work, "service.api_silent")
    api = psutil.Process(pid(at_work, "api"))
    with halted(api, *api.children(recursive=True)):
        # Whoever is in a hurry may even miss that it runs.
        said = comes(hurried(at_work), "service.api_silent", "critical")
    assert "does not answer" in said
    fine(at_work, "service.api_silent")


def test_a_supervisor_that_does_not_answer(at_work: Bullpen) -> None:
    ids = ("service.supervisor", "service.stale_files", "service.leftovers")

    def said() -> bool:
        only = [word for id_ in ids for word in ("--only", id_)]
        found = checks(hurried(at_work), *only)
        return [(found[id_]["severity"], found[id_]["state"]) for id_ in ids] == [
            ("critical", "found"),
            ("info", "ok"),
            ("warning", "ok"),
        ]

    with halted(supervisor(at_work)):
        eventually(said, "it does not answer, and all else is as it should be", LONG)
    fine(at_work, "service.supervisor")


def test_two_of_one_service(up: Bullpen) -> None:
    fine(up, "service.double")
    (up.home / "run" / "scheduler.lock").unlink()
    with child(settings_of(up), "scheduler") as second:
        text = comes(up, "service.double", "warning")
    assert f"{second.pid}" in text
    assert f"{pid(up, 'scheduler')}" in text


def test_what_a_dead_supervisor_leaves_is_found_and_removed(up: Bullpen) -> None:
    fine(up, "service.stale_files")
    main = supervisor(up)
    family = [main, *main.children(recursive=True)]
    for each in family:
        with suppress(psutil.NoSuchProcess):  # they end with the supervisor, which is the first
            each.kill()
    assert psutil.wait_procs(family, LONG)[1] == []  # and their ids are nobody's
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
        eventually(
            lambda: process.pid in lock_holders(settings_of(bullpen)).values(), "it has its lock"
        )
        yield process


def test_a_service_without_a_supervisor_is_found_and_ended(bullpen: Bullpen) -> None:
    with left_behind(bullpen) as process:
        text = found(bullpen, "service.leftovers", "warning")
        assert f"process {process.pid}" in text
        fixed(bullpen, "service.leftovers")
        assert process.wait(LONG) != -signal.SIGKILL


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


def test_settings_that_are_newer_than_the_services_that_read_them(at_work: Bullpen) -> None:
    fine(at_work, "settings.not_in_force")
    file: Path = at_work.home / "settings.toml"
    every = "api, guard, processor, scheduler"
    for text, services in (("max_runs = 3", "processor"), ("retry_max_seconds = 9", every)):
        file.write_text(f"{text}\n")
        os.utime(file, (file.stat().st_atime, file.stat().st_mtime + 30))
        shown = found(at_work, "settings.not_in_force", "info")
        assert shown == f"settings.toml was changed after the start of {services}"
    file.write_text('[telegram]\ndefault_agent = "coder"\n')
    os.utime(file, (file.stat().st_atime, file.stat().st_mtime + 30))
    fine(at_work, "settings.not_in_force")
    file.unlink()
