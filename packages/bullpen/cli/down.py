"""bullpen down and restart: stop services in order, and start them again."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

from bullpen.cli.command import Result, command, print_notes
from bullpen.cli.options import SERVICES
from bullpen.cli.output import echo
from bullpen.cli.status import NO_SERVICES, service_rows
from bullpen.cli.up import (
    START_SECONDS,
    failure_reason,
    start_services,
    wait_for_services,
)
from bullpen.core.errors import NoSupervisor, ServiceFailed
from bullpen.core.settings import Settings
from bullpen.ops.services.add import add_new_services, require_set_up
from bullpen.ops.services.launch import STOP_MARGIN_SECONDS, recovery_file, start_lock
from bullpen.ops.services.recovery import end_orphaned_services
from bullpen.ops.services.search_path import record_change
from bullpen.ops.services.supervisor import Supervisor

OTHER_SERVICES_SECONDS = 60
"""The time that the services besides the processor may take to stop, one after the other."""


@command(people_only="stop Bullpen")
def down(settings: Settings) -> Result:
    """Stop the services.

    Runs have the setting grace_seconds to end. Messages of runs that do not end in time are
    released: they are pending again, and the attempt does not count as a failure. Pending messages
    stay in the queue.

    \b
    Example:
      bullpen down
    """
    if stop_all(settings):
        return Result({"stopped": True}, "Stopped Bullpen. Next: bullpen up")
    return Result({"stopped": False}, "Bullpen is not running.")


@command(people_only="restart Bullpen")
@click.argument("services", metavar="[SERVICE]...", nargs=-1, type=SERVICES)
def restart(settings: Settings, services: tuple[str, ...]) -> Result:
    """Restart some services, or all of them.

    Without a name, all services and their supervisor are restarted.

    \b
    Examples:
      bullpen restart processor
      bullpen restart                  # after an upgrade, or a change of settings
    """
    if services:
        failed = restart_services(settings, services)
    else:
        stop_all(settings)
        _, failed = start_services(settings)
    running = Supervisor(settings).services()
    return Result(
        {"failed": failed, "services": running},
        rows=service_rows(running),
        empty=NO_SERVICES,
        hints=[line for name in failed for line in failure_reason(settings, name)],
        status=3 if failed else 0,
    )


def stop_all(settings: Settings) -> bool:
    """Stop all services and the supervisor; False if none was running."""
    if not settings.run.is_dir():
        return False
    with start_lock(settings):
        recovery_file(settings).unlink(missing_ok=True)
        supervisor = Supervisor(settings)
        ran = supervisor.alive()
        if ran and not supervisor.shutdown(_stop_seconds(settings)):
            raise ServiceFailed("the services did not stop in time", hint="Run: bullpen status")
        end_orphaned_services(settings, lambda text: echo(text, err=True))
    from bullpen.cli.tmux import end_session

    end_session(settings)
    return ran


def restart_services(settings: Settings, names: Sequence[str]) -> list[str]:
    """Restart these services; returns the services that are down afterwards."""
    supervisor = Supervisor(settings)
    if not supervisor.alive():
        raise NoSupervisor("Bullpen is not running")
    for name in names:
        require_set_up(settings, name)
    failed = set()
    with start_lock(settings):
        print_notes(record_change(settings, os.environ))
        added = add_new_services(settings, supervisor)
        for name in names:
            if name in added:
                continue
            try:
                seconds = settings.grace_seconds + STOP_MARGIN_SECONDS
                supervisor.restart(name, seconds, START_SECONDS)
            except ServiceFailed:
                failed.add(name)
        failed |= {name for name in wait_for_services(settings, supervisor) if name in names}
    return sorted(failed)


def _stop_seconds(settings: Settings) -> float:
    return settings.grace_seconds + STOP_MARGIN_SECONDS + OTHER_SERVICES_SECONDS
