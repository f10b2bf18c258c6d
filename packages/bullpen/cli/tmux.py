"""bullpen attach and up --tmux: the services in a tmux session."""

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
SIZE = ("-x", "200", "-y", "50")
"""The size until a terminal attaches, which has its own."""

PANES = (
    ("status", "status --watch"),
    ("processor", "logs processor --follow"),
    ("events", "events --follow"),
    ("logs", "logs --follow"),
)


def open_session(settings: Settings) -> None:
    """Create the session if it does not exist, and attach if this is a terminal."""
    if not session_exists(settings):
        _make(settings)
    if sys.stdin.isatty() and sys.stdout.isatty():
        attach_session(settings)
    echo("The tmux session is there. Next: bullpen attach", err=True)


def session_exists(settings: Settings) -> bool:
    """Whether the session exists."""
    return _tmux(settings, "has-session", "-t", SESSION).returncode == 0


def attach_session(settings: Settings) -> None:
    """Replace this process by tmux, attached to the session."""
    command = [*_command(settings), "attach-session", "-t", SESSION]
    # In a tmux of the person's own, TMUX would make this one attach there.
    environ = {name: text for name, text in os.environ.items() if name != "TMUX"}
    os.execvpe(command[0], command, environ)  # noqa: S606 - no shell is meant


def end_session(settings: Settings) -> None:
    """End the session, if there is one."""
    if _socket(settings).exists() and shutil.which("tmux"):
        _tmux(settings, "kill-server")


def _make(settings: Settings) -> None:
    socket_directory(settings)
    program = shlex.join((str(Path(sys.executable).parent / "bullpen"),))
    home = shlex.quote(str(settings.home))
    first, *others = (
        (title, f"BULLPEN_HOME={home} {program} {command}") for title, command in PANES
    )
    _run_checked(settings, "new-session", "-d", "-s", SESSION, *SIZE, first[1])
    _title(settings, 0, first[0])
    for number, (title, command) in enumerate(others, 1):
        _run_checked(settings, "split-window", "-t", SESSION, command)
        _run_checked(settings, "select-layout", "-t", SESSION, "tiled")
        _title(settings, number, title)
    _run_checked(settings, "select-pane", "-t", f"{SESSION}:0.0")


def _title(settings: Settings, pane: int, title: str) -> None:
    _run_checked(settings, "select-pane", "-t", f"{SESSION}:0.{pane}", "-T", title)


def _run_checked(settings: Settings, *args: str) -> None:
    done = _tmux(settings, *args)
    if done.returncode != 0:
        raise ServiceFailed(f"tmux {args[0]}: {done.stderr.strip()}", hint="Look: tmux -V")


def _tmux(settings: Settings, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*_command(settings), *args], capture_output=True, text=True, check=False, timeout=20
    )


def _command(settings: Settings) -> list[str]:
    program = shutil.which("tmux")
    if program is None:
        raise ServiceFailed(
            "tmux is not installed", hint="Install it, or look with `bullpen status --watch`."
        )
    # A server of its own keeps its keys and colours apart from other sessions.
    return [program, "-S", str(_socket(settings)), "-f", str(tmux_config())]


def _socket(settings: Settings) -> Path:
    return settings.sockets / "tmux.sock"


@click.command()
@click.pass_obj
def attach(settings: Settings) -> None:
    """Go into the tmux session that `bullpen up --tmux` made. Ctrl-B D leaves it as it is.

    \b
    Example:
      bullpen attach
    """
    require_person("watch Bullpen")
    if not session_exists(settings):
        raise NoSupervisor("there is no tmux session", hint="Make it with `bullpen up --tmux`.")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError("This needs a terminal; `bullpen status` does not.")
    attach_session(settings)
