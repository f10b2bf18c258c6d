"""The disk of a home is full for a while: everything goes on, and nobody has to start anything."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from bullpen.ops.services.supervisord import LogFileHandler
from tests.cli.command import Bullpen
from tests.cli.conftest import stop_all
from tests.ports import free_port
from tests.processor.working import eventually
from tests.services.running import pids, supervisor

LONG = 150
DISK = "size=48m,mode=700"
PIPE_LINES = 600
"""Requests whose log lines are more than a pipe holds."""


@pytest.fixture
def small() -> Iterator[Bullpen]:
    """A home that runs on a small file system of its own."""
    disk = Path(tempfile.mkdtemp(prefix="bp-disk-", dir="/tmp"))
    mount = ["mount", "-t", "tmpfs", "-o", DISK, "none", str(disk)]
    if (
        os.geteuid() != 0
        or shutil.which("mount") is None
        or subprocess.run(mount, check=False, capture_output=True).returncode != 0
    ):
        disk.rmdir()
        pytest.skip("no small file system can be mounted here")
    home = disk / "home"
    made = Bullpen(home, {"BULLPEN_API_PORT": str(free_port())})
    try:
        made.ok("up")
        yield made
    finally:
        (disk / "filler").unlink(missing_ok=True)
        stop_all(disk)
        subprocess.run(["umount", "-l", str(disk)], check=True)
        disk.rmdir()


def fill(disk: Path) -> None:
    """Leave no byte."""
    with (disk / "filler").open("ab", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(1 << 16))
    with (disk / "filler").open("ab", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x")


def request(bullpen: Bullpen, path: str, body: object = None, token: str = "") -> int:
    """The status of the answer."""
    asked = urllib.request.Request(
        f"http://127.0.0.1:{bullpen.environ['BULLPEN_API_PORT']}{path}",
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.slow
def test_services_and_logs_survive_a_full_disk_and_every_message_is_answered(
    small: Bullpen,
) -> None:
    token = (small.home / "token").read_text().strip()
    before, main = pids(small), supervisor(small)
    fill(small.home.parent)
    for number in range(20):
        request(small, "/api/message", {"message": f"hello {number}"}, token)
        assert request(small, "/nothing") in (401, 404)
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline:
        assert request(small, "/healthz") == 200
        request(small, "/nothing")
    (small.home.parent / "filler").unlink()
    for _ in range(PIPE_LINES):  # a pipe that nobody reads is full by now
        assert request(small, "/nothing") in (401, 404)
    assert request(small, "/healthz") == 200
    eventually(lambda: small("status").status == 0, "all run", LONG)
    assert supervisor(small) == main
    assert pids(small) == before
    assert small.ok("send", "hello").out.splitlines()[0] == "@assistant: hello"
    log = (small.home / "logs" / "api.log").read_text()
    assert "the disk was full" in log
    eventually(lambda: nothing_waits(small), "all is answered", LONG)


def nothing_waits(bullpen: Bullpen) -> bool:
    """Whether the queue is empty."""
    found = bullpen.ok("queue", "status", "--json").json
    return bool(found["pending"] == found["processing"] == 0)


def test_a_log_without_room_drops_lines_and_tells_how_many(tmp_path: Path) -> None:
    """`/dev/full` is a file system's answer without one."""
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    path = tmp_path / "api.log"
    handler = LogFileHandler(str(path), "a", 100, 1)
    handler.setFormat("%(message)s")
    records = [Record(f"line {number}\n".encode()) for number in range(4)]
    handler.emit(records[0])
    handler.close()
    path.rename(tmp_path / "kept")
    path.symlink_to("/dev/full")
    handler.emit(records[1])
    handler.emit(records[2])
    handler.reopen()
    path.unlink()
    (tmp_path / "kept").rename(path)
    handler.emit(records[3])
    lines = path.read_text().splitlines()
    assert (lines[0], lines[-1]) == ("line 0", "line 3")
    assert "lost 2 records of this log" in lines[1]
    for _ in range(20):
        handler.emit(Record(b"x" * 30 + b"\n"))
    assert path.stat().st_size < 200
    assert (tmp_path / "api.log.1").stat().st_size >= 100
    handler.close()


class Record:
    """A record as supervisord makes it of a service's output."""

    def __init__(self, msg: bytes) -> None:
        self.msg = msg
        self.kw: dict[str, object] = {}
