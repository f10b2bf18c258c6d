"""bullpen up: all services under their supervisor."""

from __future__ import annotations

import os
import subprocess
import sys

import click

from bullpen.cli.acting import require_person
from bullpen.cli.output import as_json, print_json
from bullpen.cli.problems import print_problems
from bullpen.cli.services.foreground import run_in_foreground
from bullpen.cli.services.prepared import end_orphaned_services, prepare
from bullpen.cli.services.ready import (
    print_failure_reason,
    start_stopped,
    wait_for_services,
    wait_until,
)
from bullpen.cli.services.table import print_services
from bullpen.core.errors import RunsAlready, ServiceFailed
from bullpen.core.listening import api_url
from bullpen.core.services.declared import list_programs
from bullpen.core.services.launch import launch
from bullpen.core.services.lock import start_lock
from bullpen.core.services.supervisor import Supervisor
from bullpen.core.settings import Settings
from bullpen.core.settings_problems import load_lenient

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
    require_person("start Bullpen")
    if foreground and (tmux or as_json):
        raise click.UsageError("--foreground shows the logs, and nothing else.")
    _say_problems()
    if foreground:
        sys.exit(run_in_foreground(settings))
    again, failed = start_services(settings)
    supervisor = Supervisor(settings)
    if as_json:
        print_json(
            {
                "running_already": again,
                "failed": failed,
                "api": None if "api" in failed else api_url(settings),
                "services": supervisor.services(),
            }
        )
    else:
        _print_result(settings, supervisor, again, failed)
    if tmux:
        from bullpen.cli.services.watching import open_session

        open_session(settings)
    if failed:
        sys.exit(3)


def start_services(settings: Settings, *, stays: bool = True) -> tuple[bool, list[str]]:
    """Whether it ran already, and which services do not run in spite of it."""
    supervisor = Supervisor(settings)
    with start_lock(settings):
        again = supervisor.alive()
        if again:
            prepare(settings, _tell)
            start_stopped(settings, supervisor)
        else:
            start_supervisor(settings, stays=stays)
            if not wait_until(supervisor.alive, SUPERVISOR_SECONDS):
                raise ServiceFailed(
                    "the supervisor does not start",
                    hint=f"See {settings.logs / 'supervisord.log'}, and supervisord.out beside it.",
                )
        return again, wait_for_services(settings, supervisor)


def start_supervisor(settings: Settings, *, stays: bool = True) -> subprocess.Popen[bytes]:
    """See to what is missing and start the supervisor."""
    if Supervisor(settings).alive():
        raise RunsAlready("Bullpen runs already in this home")
    end_orphaned_services(settings, _tell)
    prepare(settings, _tell)
    services = [each for each in list_programs() if each.set_up(settings)]
    return launch(settings, services, stays=stays)


def _print_result(
    settings: Settings, supervisor: Supervisor, again: bool, failed: list[str]
) -> None:
    if again:
        click.echo("Bullpen runs already.")
    print_services(supervisor.services())
    for name in failed:
        print_failure_reason(settings, name)
    if "api" not in failed:
        click.echo(f"The API is at {api_url(settings)}")
    click.echo("Next: bullpen doctor" if failed else 'Next: bullpen send "hello"')


def _say_problems() -> None:
    """What of settings.toml has no meaning; what cannot be read every command says by itself."""
    _, problems = load_lenient(os.environ)
    print_problems((each for each in problems if each.warning), warnings=True)


def _tell(text: str) -> None:
    click.echo(text, err=True)
