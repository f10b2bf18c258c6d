"""bullpen attach and up --tmux: agents, events, status and logs in a tmux session."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click

from bullpen.cli.command import require_person
from bullpen.cli.output import echo
from bullpen.core.errors import NoSupervisor, ServiceFailed
from bullpen.core.network import socket_directory
from bullpen.core.settings import Settings
from bullpen.ops.services.programs import tmux_config

SESSION = "bullpen"
DEFAULT_SIZE = (200, 50)
"""The size without a terminal; a terminal that attaches resizes it."""
WIDE_COLUMNS = 100
"""Narrower terminals have only the two main panes."""

AGENTS = ("agents", "team watch")
EVENTS = ("events", "events --follow --limit 20")
SIDE_PANES = (("status", "status --watch"), ("processor", "logs processor --follow"))
SIDE_WIDTH, LOG_HEIGHT, EVENTS_HEIGHT = "40%", "50%", "30%"
LOW_LINES, LOW_EVENTS_HEIGHT = 30, "5"
"""In a low terminal, the agents get the space that their view needs."""
PANE_ID = ("-P", "-F", "#{pane_id}")
"""The options that print the id of a new pane."""


def open_session(settings: Settings) -> None:
    """Create the session if it does not exist, and attach if this is a terminal."""
    if not session_exists(settings):
        _make(settings)
    if sys.stdin.isatty() and sys.stdout.isatty():
        attach_session(settings)
    echo("The tmux session is running. Next: bullpen attach", err=True)


def session_exists(settings: Settings) -> bool:
    """Whether the session exists."""
    return _tmux(settings, "has-session", "-t", SESSION).returncode == 0


def attach_session(settings: Settings) -> None:
    """Replace this process by a tmux client of the session."""
    command = [*_command(settings), "attach-session", "-t", SESSION]
    # Inside another tmux session, TMUX would make this client attach to that server.
    environ = {name: text for name, text in os.environ.items() if name != "TMUX"}
    os.execvpe(command[0], command, environ)  # noqa: S606 - no shell is meant


def end_session(settings: Settings) -> None:
    """End the session, if there is one."""
    if _socket(settings).exists() and shutil.which("tmux"):
        _tmux(settings, "kill-server")


def _make(settings: Settings) -> None:
    """Make the session: agents in the large pane and events below; others beside them."""
    socket_directory(settings)
    columns, lines = shutil.get_terminal_size(DEFAULT_SIZE)
    size = ("-x", str(columns), "-y", str(lines))
    agents = _run_checked(
        settings, "new-session", "-d", "-s", SESSION, *size, *PANE_ID, _program(settings, AGENTS)
    )
    _title(settings, agents, AGENTS)
    if columns >= WIDE_COLUMNS:
        status, log = SIDE_PANES
        side = _split(settings, agents, status, "-h", SIDE_WIDTH)
        _split(settings, side, log, "-v", LOG_HEIGHT)
    height = EVENTS_HEIGHT if lines >= LOW_LINES else LOW_EVENTS_HEIGHT
    _split(settings, agents, EVENTS, "-v", height)
    _run_checked(settings, "select-pane", "-t", agents)


def _split(settings: Settings, pane: str, new: tuple[str, str], way: str, size: str) -> str:
    """Split a pane; returns the id of the new one, below it or on its right."""
    where = ("split-window", way, "-t", pane, "-l", size)
    made = _run_checked(settings, *where, *PANE_ID, _program(settings, new))
    _title(settings, made, new)
    return made


def _program(settings: Settings, pane: tuple[str, str]) -> str:
    program = shlex.quote(str(Path(sys.executable).parent / "bullpen"))
    return f"BULLPEN_HOME={shlex.quote(str(settings.home))} {program} {pane[1]}"


def _title(settings: Settings, id_: str, pane: tuple[str, str]) -> None:
    _run_checked(settings, "select-pane", "-t", id_, "-T", pane[0])


def _run_checked(settings: Settings, *args: str) -> str:
    done = _tmux(settings, *args)
    if done.returncode != 0:
        raise ServiceFailed(
            f"tmux {args[0]} failed: {done.stderr.strip()}",
            hint="Bullpen needs tmux 3.1 or later. Show the version: tmux -V",
        )
    return done.stdout.strip()


def _tmux(settings: Settings, *args: str) -> subprocess.CompletedProcess[str]:
    # Programs in panes would take the size of this terminal for theirs.
    environ = {name: text for name, text in os.environ.items() if name not in ("COLUMNS", "LINES")}
    return subprocess.run(
        [*_command(settings), *args],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )


def _command(settings: Settings) -> list[str]:
    program = shutil.which("tmux")
    if program is None:
        raise ServiceFailed("tmux is not installed", hint="Install it, or run: bullpen team watch")
    # A separate server keeps its keys and colours apart from other sessions.
    return [program, "-S", str(_socket(settings)), "-f", str(tmux_config())]


def _socket(settings: Settings) -> Path:
    return settings.sockets / "tmux.sock"


@click.command()
@click.pass_obj
def attach(settings: Settings) -> None:
    """Attach to the tmux session of `bullpen up --tmux`.

    Ctrl-B D detaches; the session keeps running.

    \b
    Example:
      bullpen attach
    """
    require_person("watch Bullpen")
    if not session_exists(settings):
        raise NoSupervisor("there is no tmux session", hint="Start one with `bullpen up --tmux`.")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError("attach needs a terminal; without one, use `bullpen status`")
    attach_session(settings)
