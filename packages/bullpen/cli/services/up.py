"""bullpen up: all services under their supervisor."""

from __future__ import annotations

import os
import subprocess
import sys

import click

from bullpen.cli.acting import only_people
from bullpen.cli.output import as_json, show_json
from bullpen.cli.problems import say_problems
from bullpen.cli.services.prepared import clear_away, prepare
from bullpen.cli.services.ready import not_running, say_why, start_what_sleeps, until
from bullpen.cli.services.table import show_services
from bullpen.core.errors import RunsAlready, ServiceFailed
from bullpen.core.listening import address
from bullpen.core.services.declared import declared_services
from bullpen.core.services.launch import launch
from bullpen.core.services.lock import turn_to_start
from bullpen.core.services.supervisor import Supervisor
from bullpen.core.settings import Settings
from bullpen.core.settings_problems import load_what_can_be

SUPERVISOR_SECONDS = 30.0


@click.command()
@click.option("--foreground", is_flag=True, help="Stay, show the logs, stop all at the end.")
@click.option("--tmux", is_flag=True, help="Watch them in tmux: status, processor, events, logs.")
@as_json
@click.pass_obj
def up(settings: Settings, foreground: bool, tmux: bool, as_json: bool) -> None:
    """Start the services in the background. The exit status is 3 if one does not start.

    What is missing is made: the home, the database, a first agent. Nothing is asked. What runs
    already goes on; what had stopped or given up is started again.

    \b
    Examples:
      bullpen up
      bullpen up --tmux
      bullpen up --foreground          for containers and systemd
    """
    only_people("start Bullpen")
    if foreground and (tmux or as_json):
        raise click.UsageError("--foreground shows the logs, and nothing else.")
    _say_problems()
    if foreground:
        from bullpen.cli.services.foreground import stay

        sys.exit(stay(settings))
    again, failed = bring_up(settings)
    supervisor = Supervisor(settings)
    if as_json:
        show_json(
            {
                "running_already": again,
                "failed": failed,
                "api": None if "api" in failed else address(settings),
                "services": supervisor.services(),
            }
        )
    else:
        _show(settings, supervisor, again, failed)
    if tmux:
        from bullpen.cli.services.watching import watch_in_tmux

        watch_in_tmux(settings)
    if failed:
        sys.exit(3)


def bring_up(settings: Settings, *, stays: bool = True) -> tuple[bool, list[str]]:
    """Whether it ran already, and which services do not run in spite of it."""
    supervisor = Supervisor(settings)
    with turn_to_start(settings):
        again = supervisor.alive()
        if again:
            prepare(settings, _tell)
            start_what_sleeps(settings, supervisor)
        else:
            begin(settings, stays=stays)
            if not until(supervisor.alive, SUPERVISOR_SECONDS):
                raise ServiceFailed(
                    "the supervisor does not start",
                    hint=f"See {settings.logs / 'supervisord.log'}, and supervisord.out beside it.",
                )
        return again, not_running(settings, supervisor)


def begin(settings: Settings, *, stays: bool = True) -> subprocess.Popen[bytes]:
    """See to what is missing and start the supervisor."""
    if Supervisor(settings).alive():
        raise RunsAlready("Bullpen runs already in this home")
    clear_away(settings, _tell)
    prepare(settings, _tell)
    services = [each for each in declared_services() if each.set_up(settings)]
    return launch(settings, services, stays=stays)


def _show(settings: Settings, supervisor: Supervisor, again: bool, failed: list[str]) -> None:
    if again:
        click.echo("Bullpen runs already.")
    show_services(supervisor.services())
    for name in failed:
        say_why(settings, name)
    if "api" not in failed:
        click.echo(f"The API is at {address(settings)}")
    click.echo("Next: bullpen doctor" if failed else 'Next: bullpen send "hello"')


def _say_problems() -> None:
    """What of settings.toml has no meaning; what cannot be read every command says by itself."""
    _, problems = load_what_can_be(os.environ)
    say_problems((each for each in problems if each.warning), warnings=True)


def _tell(text: str) -> None:
    click.echo(text, err=True)
