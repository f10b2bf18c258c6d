"""bullpen restart: one service, some, or all of them anew."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from bullpen.cli.acting import require_person
from bullpen.cli.output import as_json, print_json
from bullpen.cli.services.down import stop_all
from bullpen.cli.services.names import SERVICES
from bullpen.cli.services.ready import START_SECONDS, print_failure_reason, wait_for_services
from bullpen.cli.services.table import print_services
from bullpen.cli.services.up import start_services
from bullpen.core.errors import NoSupervisor, ServiceFailed
from bullpen.core.services.launch import STOP_MARGIN_SECONDS
from bullpen.core.services.lock import start_lock
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
    require_person("restart Bullpen")
    if services:
        failed = restart_services(settings, services)
    else:
        stop_all(settings)
        _, failed = start_services(settings)
    found = Supervisor(settings).services()
    if as_json:
        print_json({"failed": failed, "services": found})
    else:
        print_services(found)
        for name in failed:
            print_failure_reason(settings, name)
    if failed:
        sys.exit(3)


def restart_services(settings: Settings, names: Sequence[str]) -> list[str]:
    """Stop these and start them again; gives those that do not run afterwards."""
    supervisor = Supervisor(settings)
    if not supervisor.alive():
        raise NoSupervisor("Bullpen does not run")
    failed = set()
    with start_lock(settings):
        for name in names:
            try:
                seconds = settings.grace_seconds + STOP_MARGIN_SECONDS
                supervisor.restart(name, seconds, START_SECONDS)
            except ServiceFailed:
                failed.add(name)
        failed |= {name for name in wait_for_services(settings, supervisor) if name in names}
    return sorted(failed)
