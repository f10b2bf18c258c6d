"""bullpen down: the end of all services, in order."""

from __future__ import annotations

import click

from bullpen.cli.acting import require_person
from bullpen.cli.output import as_json, print_result
from bullpen.cli.services.prepared import end_orphaned_services
from bullpen.core.errors import ServiceFailed
from bullpen.core.services.launch import STOP_MARGIN_SECONDS
from bullpen.core.services.lock import start_lock
from bullpen.core.services.supervisor import Supervisor
from bullpen.core.settings import Settings

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
    from bullpen.cli.services.watching import end_session

    end_session(settings)
    return ran


def _seconds(settings: Settings) -> float:
    return settings.grace_seconds + STOP_MARGIN_SECONDS + OTHER_SERVICES_SECONDS
