"""bullpen up --foreground: the services as long as this process lasts, as systemd wants it."""

from __future__ import annotations

import signal
import subprocess

import click

from bullpen.cli.services.logs import new_lines
from bullpen.cli.services.prepared import end_orphaned_services
from bullpen.cli.services.up import start_supervisor
from bullpen.core.ending import StopSignals
from bullpen.core.listening import api_url
from bullpen.core.log_follow import LogFollower
from bullpen.core.services.declared import list_programs
from bullpen.core.services.lock import start_lock
from bullpen.core.settings import Settings

LOG_POLL_SECONDS = 0.2


def run_in_foreground(settings: Settings) -> int:
    """Run them until SIGTERM or Ctrl-C, and stop them in order; 1 if their supervisor died."""
    ending = StopSignals()
    with start_lock(settings):
        names = [each.name for each in list_programs()]
        followed = {name: LogFollower(settings.logs / f"{name}.log") for name in names}
        supervisor = start_supervisor(settings, stays=False)
    click.echo(f"Bullpen runs; its API is at {api_url(settings)}. Ctrl-C stops it.", err=True)
    while not ending.wait(LOG_POLL_SECONDS) and supervisor.poll() is None:
        _print_new_lines(settings, followed)
    died = supervisor.poll() is not None
    if died:
        click.echo("bullpen: the supervisor has died; its services are ended", err=True)
        end_orphaned_services(settings, lambda text: click.echo(text, err=True))
    else:
        _stop(settings, supervisor, followed)
    return int(died)


def _stop(
    settings: Settings, supervisor: subprocess.Popen[bytes], followed: dict[str, LogFollower]
) -> None:
    """As supervisord does it by itself: in order, each with its time. A second signal is for us."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    supervisor.terminate()
    while supervisor.poll() is None:
        _print_new_lines(settings, followed)
        try:
            supervisor.wait(LOG_POLL_SECONDS)
        except subprocess.TimeoutExpired:
            continue
    _print_new_lines(settings, followed)
    click.echo("Bullpen has stopped.", err=True)


def _print_new_lines(settings: Settings, followed: dict[str, LogFollower]) -> None:
    for name, line in new_lines(settings, followed):
        click.echo(f"{name:<9} | {line}")
