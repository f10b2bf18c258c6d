"""bullpen down and restart: stop services in order, and start them again."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from bullpen.cli.command import require_person
from bullpen.cli.options import SERVICES
from bullpen.cli.output import as_json, print_json, print_result
from bullpen.cli.status import print_services
from bullpen.cli.up import (
    START_SECONDS,
    end_orphaned_services,
    print_failure_reason,
    start_services,
    wait_for_services,
)
from bullpen.core.errors import NoSupervisor, ServiceFailed
from bullpen.core.settings import Settings
from bullpen.ops.services.launch import STOP_MARGIN_SECONDS, start_lock
from bullpen.ops.services.supervisor import Supervisor

OTHER_SERVICES_SECONDS = 60
"""What the services besides the processor may take, one after the other."""


@click.command()
@as_json
@click.pass_obj
def down(settings: Settings, as_json: bool) -> None:
    """Stop the services; runs that do not end in time go back to the queue.

    What takes work in stops first, the processor last: its runs get the setting grace_seconds to
    end. What waits stays, and nothing of it counts as a failure.

    \b
    Example:
      bullpen down
    """
    require_person("stop Bullpen")
    if stop_all(settings):
        print_result(as_json, {"stopped": True}, "Bullpen has stopped. Next: bullpen up")
    else:
        print_result(as_json, {"stopped": False}, "Bullpen does not run.")


def stop_all(settings: Settings) -> bool:
    """Stop all of it; false if nothing ran."""
    if not settings.run.is_dir():
        return False
    with start_lock(settings):
        supervisor = Supervisor(settings)
        ran = supervisor.alive()
        if ran and not supervisor.shutdown(_seconds(settings)):
            raise ServiceFailed("the services did not stop in time", hint="Look: bullpen status")
        end_orphaned_services(settings, lambda text: click.echo(text, err=True))
    from bullpen.cli.tmux import end_session

    end_session(settings)
    return ran


def _seconds(settings: Settings) -> float:
    return settings.grace_seconds + STOP_MARGIN_SECONDS + OTHER_SERVICES_SECONDS


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
