"""bullpen restart: one service, some, or all of them anew."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from bullpen.cli.acting import only_people
from bullpen.cli.output import as_json, show_json
from bullpen.cli.services.down import bring_down
from bullpen.cli.services.names import SERVICES
from bullpen.cli.services.ready import START_SECONDS, not_running, say_why
from bullpen.cli.services.table import show_services
from bullpen.cli.services.up import bring_up
from bullpen.core.errors import NoSupervisor, ServiceFailed
from bullpen.core.services.launch import MARGIN_SECONDS
from bullpen.core.services.lock import turn_to_start
from bullpen.core.services.supervisor import Supervisor
from bullpen.core.settings import Settings


@click.command()
@click.argument("services", nargs=-1, type=SERVICES)
@as_json
@click.pass_obj
def restart(settings: Settings, services: tuple[str, ...], as_json: bool) -> None:
    """Stop services and start them again: those that are named, or all with their supervisor.

    \b
    Examples:
      bullpen restart processor
      bullpen restart                  after a new version, or new settings
    """
    only_people("restart Bullpen")
    if services:
        failed = restart_some(settings, services)
    else:
        bring_down(settings)
        _, failed = bring_up(settings)
    found = Supervisor(settings).services()
    if as_json:
        show_json({"failed": failed, "services": found})
    else:
        show_services(found)
        for name in failed:
            say_why(settings, name)
    if failed:
        sys.exit(3)


def restart_some(settings: Settings, names: Sequence[str]) -> list[str]:
    """Stop these and start them again; gives those that do not run afterwards."""
    supervisor = Supervisor(settings)
    if not supervisor.alive():
        raise NoSupervisor("Bullpen does not run")
    failed = set()
    with turn_to_start(settings):
        for name in names:
            try:
                seconds = settings.grace_seconds + MARGIN_SECONDS
                supervisor.restart(name, seconds, START_SECONDS)
            except ServiceFailed:
                failed.add(name)
        failed |= {name for name in not_running(settings, supervisor) if name in names}
    return sorted(failed)
