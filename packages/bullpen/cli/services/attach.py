"""bullpen attach: into the tmux session in which Bullpen is watched."""

from __future__ import annotations

import sys

import click

from bullpen.cli.acting import require_person
from bullpen.cli.services.watching import attach_session, session_exists
from bullpen.core.errors import NoSupervisor
from bullpen.core.settings import Settings


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
