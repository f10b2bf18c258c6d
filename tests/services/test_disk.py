"""A home on a disk that is full or cannot be written: a sentence, and nothing half done."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.command import Bullpen
from tests.services.running import of_home

FULL = (
    "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)),) * 2)"
)
IGNORE = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)"
START = "from bullpen.cli.main import main; main()"


def run(bullpen: Bullpen, *command: str) -> subprocess.CompletedProcess[str]:
    """A command to its end."""
    return subprocess.run(
        command,
        env=bullpen.environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize("size", [0, 20, 4096, 40_000])
def test_no_file_can_grow_beyond_what_is_left(empty: Bullpen, size: int) -> None:
    """The size that no file can exceed stands for the end of the disk."""
    program = (sys.executable, "-c", f"{FULL}\n{IGNORE}\n{START}", str(size))
    result = run(empty, *program, "up")
    assert result.returncode in (1, 75), result
    assert "Traceback" not in result.stderr
    assert result.stderr.startswith("Error: ")
    assert of_home(empty.home) == []
    assert "up" in empty("status").out
    # What was begun stands in nobody's way once there is room.
    empty.ok("up")
    assert empty.ok("send", "hello").out.splitlines()[0] == "@assistant: hello"


@pytest.fixture
def read_only(empty: Bullpen) -> Iterator[Callable[[], None]]:
    """Makes the home one that nobody can write to, root included, until the test is over."""
    mounted: list[Path] = []

    def close() -> None:
        bind = ["mount", "--bind", str(empty.home), str(empty.home)]
        if os.geteuid() != 0:
            empty.home.chmod(0o500)
        elif shutil.which("mount") is None or subprocess.run(bind, check=False).returncode != 0:
            pytest.skip("root may not make a file system read-only here")
        else:
            mounted.append(empty.home)
            subprocess.run(["mount", "-o", "remount,ro,bind", str(empty.home)], check=True)

    yield close
    for each in mounted:
        subprocess.run(["umount", str(each)], check=True)
    empty.home.chmod(0o700)


@pytest.mark.parametrize("made", [False, True])
def test_a_home_that_cannot_be_written(
    empty: Bullpen, read_only: Callable[[], None], made: bool
) -> None:
    if made:
        empty.ok("up")
        empty.ok("down")
    before = sorted(path.name for path in empty.home.iterdir())
    read_only()
    for command in (("up",), ("send", "hello"), ("agent", "add", "coder")):
        result = empty(*command)
        assert result.status == 1, result
        assert result.err.startswith("Error: ")
    assert sorted(path.name for path in empty.home.iterdir()) == before
    assert of_home(empty.home) == []
