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


def panes(bullpen: Bullpen) -> dict[str, int]:
    """The titles of the panes, and their sizes in cells."""
    size = "#{e|*:#{pane_width},#{pane_height}}"
    listed = tmux(bullpen, "list-panes", "-s", "-t", "bullpen", "-F", f"#{{pane_title}} {size}")
    return {line.split()[0]: int(line.split()[1]) for line in listed.splitlines()}


def test_agents_and_events_have_the_large_panes_and_down_ends_the_session(empty: Bullpen) -> None:
    refused = empty("attach")
    assert refused.status == 1
    assert "bullpen up --tmux" in refused.err
    empty.ok("up")
    empty.ok("send", "before")
    made = empty.ok("up", "--tmux", COLUMNS="200", LINES="50")
    assert "bullpen attach" in made.err
    assert empty("attach").status == 2  # no terminal here
    try:
        eventually(lambda: "message_enqueued" in pane(empty, "events"), "events of before")
        eventually(lambda: "Bullpen is running" in pane(empty, "status"), "the status")
        empty.ok("send", "hello")
        eventually(lambda: "owner → @assistant" in pane(empty, "agents"), "the agents")
        eventually(lambda: "cli_" in pane(empty, "processor"), "the processor's log")
        again = empty.ok("up", "--tmux")
        assert "already running" in again.out
        attach_and_leave(empty)
        sizes = panes(empty)
        assert max(sizes, key=lambda each: sizes[each]) == "agents"
        assert set(sizes) == {"agents", "events", "status", "processor"}
    finally:
        empty.ok("down")
    assert tmux(empty, "list-sessions") == ""
    eventually(lambda: of_home(empty.home) == [], "all have ended")


def test_in_80_columns_there_are_only_agents_and_events(empty: Bullpen) -> None:
    empty.ok("up")
    empty.ok("send", "hello")
    empty.ok("up", "--tmux", COLUMNS="80", LINES="24")
    try:
        sizes = panes(empty)
        assert set(sizes) == {"agents", "events"}
        assert sizes["agents"] > sizes["events"]
        eventually(lambda: "owner → @assistant" in pane(empty, "agents"), "what happened")
    finally:
        empty.ok("down")


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
    assert "team watch" in refused.err
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
