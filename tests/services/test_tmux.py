"""bullpen up --tmux and attach: Bullpen as people like to watch it."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import PROGRAM, Bullpen
from tests.processor.working import eventually
from tests.services.running import of_home

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
]


def tmux(bullpen: Bullpen, *args: str) -> str:
    """What tmux answers on the home's own socket."""
    command = ["tmux", "-S", str(bullpen.home / "run" / "tmux.sock"), *args]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    return done.stdout


def pane(bullpen: Bullpen, title: str) -> str:
    """What is on a pane."""
    panes = tmux(bullpen, "list-panes", "-t", "bullpen", "-F", "#{pane_title} #{pane_id}")
    ids = dict(line.split() for line in panes.splitlines())
    return tmux(bullpen, "capture-pane", "-p", "-t", ids[title])


def test_four_panes_show_what_happens_and_down_ends_them(empty: Bullpen) -> None:
    refused = empty("attach")
    assert refused.status == 1
    assert "bullpen up --tmux" in refused.err
    made = empty.ok("up", "--tmux")
    assert "bullpen attach" in made.err
    assert empty("attach").status == 2  # no terminal here
    try:
        eventually(lambda: "running" in pane(empty, "status"), "the status")
        empty.ok("send", "hello")
        eventually(lambda: "message_enqueued" in pane(empty, "events"), "the events")
        eventually(lambda: "is ready" in pane(empty, "processor"), "the processor's log")
        eventually(lambda: "scheduler | " in pane(empty, "logs"), "all logs")
        again = empty.ok("up", "--tmux")
        assert "already running" in again.out
        attach_and_leave(empty)
        panes = tmux(empty, "list-panes", "-s", "-t", "bullpen", "-F", "#{pane_id}")
        assert len(panes.splitlines()) == 4
    finally:
        empty.ok("down")
    assert tmux(empty, "list-sessions") == ""
    eventually(lambda: of_home(empty.home) == [], "all have ended")


def attach_and_leave(bullpen: Bullpen) -> None:
    """What a person does who looks at it; the session is there afterwards as before."""
    child, terminal = pty.fork()
    if child == 0:
        os.execve(PROGRAM[0], [*PROGRAM, "attach"], bullpen.environment(TERM="xterm"))
    eventually(lambda: "attached" in tmux(bullpen, "list-sessions"), "somebody is there")
    os.write(terminal, b"\x02d")
    assert _end(child, terminal) == 0
    eventually(lambda: "attached" not in tmux(bullpen, "list-sessions"), "nobody is there")
    assert "bullpen" in tmux(bullpen, "list-sessions")


def test_without_tmux_everything_runs_and_it_says_so(empty: Bullpen, tmp_path: Path) -> None:
    bare = tmp_path / "bin"
    bare.mkdir()
    (bare / "python").symlink_to(sys.executable)
    refused = empty("up", "--tmux", PATH=str(bare))
    assert refused.status == 1
    assert "tmux is not installed" in refused.err
    assert "status --watch" in refused.err
    assert empty.ok("status").status == 0
    empty.ok("down")


def _end(child: int, terminal: int) -> int:
    """Read what it shows until it ends; its exit status."""
    while True:
        try:
            if not os.read(terminal, 1 << 16):
                break
        except OSError:  # the terminal's other side is closed
            break
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
