"""bullpen up --foreground: the services as long as this process lasts, as systemd wants it."""

from __future__ import annotations

import signal
import subprocess

import click

from bullpen.cli.services.logs import new_lines
from bullpen.cli.services.prepared import clear_away
from bullpen.cli.services.up import begin
from bullpen.core.ending import Ending
from bullpen.core.listening import address
from bullpen.core.log_follow import LogFollower
from bullpen.core.services.declared import declared_services
from bullpen.core.services.lock import turn_to_start
from bullpen.core.settings import Settings

LOOK_SECONDS = 0.2


def stay(settings: Settings) -> int:
    """Run them until SIGTERM or Ctrl-C, and stop them in order; 1 if their supervisor died."""
    ending = Ending()
    with turn_to_start(settings):
        names = [each.name for each in declared_services()]
        followed = {name: LogFollower(settings.logs / f"{name}.log") for name in names}
        supervisor = begin(settings, stays=False)
    click.echo(f"Bullpen runs; its API is at {address(settings)}. Ctrl-C stops it.", err=True)
    while not ending.wait(LOOK_SECONDS) and supervisor.poll() is None:
        _show(settings, followed)
    died = supervisor.poll() is not None
    if died:
        click.echo("bullpen: the supervisor has died; its services are ended", err=True)
        clear_away(settings, lambda text: click.echo(text, err=True))
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
        _show(settings, followed)
        try:
            supervisor.wait(LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            continue
    _show(settings, followed)
    click.echo("Bullpen has stopped.", err=True)


def _show(settings: Settings, followed: dict[str, LogFollower]) -> None:
    for name, line in new_lines(settings, followed):
        click.echo(f"{name:<9} | {line}")
