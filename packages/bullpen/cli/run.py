"""bullpen run: one service in the foreground. The composition root: it imports all services."""

from __future__ import annotations

import atexit
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict

import click

from bullpen.cli.command import require_person
from bullpen.cli.lazy import LazyGroup, keep_imports
from bullpen.cli.output import print_json
from bullpen.core.logs import configure_logging
from bullpen.core.network import check_api_address
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import has_valid_database_url, open_store
from bullpen.ops.services.launch import (
    is_supervised,
    service_lock,
    supervisor_pid,
    terminate_with_parent,
)
from bullpen.ops.services.programs import RENAMED_SERVICES
from bullpen.ops.services.recovery import begin_recovery
from bullpen.ops.services.settings_in_force import record_settings


@click.group(cls=LazyGroup, aliases=RENAMED_SERVICES)
@click.pass_obj
def run(settings: Settings) -> None:
    """Run one service in the foreground.

    It runs in addition to the supervisor's services. A home may have more than one processor and
    scheduler; the supervisor runs one of each.

    \b
    Example:
      bullpen run processor
    """
    require_person("run services")
    if is_supervised(os.environ):
        _end_with_supervisor(settings)
    configure_logging(settings)


def _end_with_supervisor(settings: Settings) -> None:
    """End with the supervisor; if it was killed, start its recovery."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # until the service has its own handler
    process, supervisor = os.getpid(), supervisor_pid(os.environ)

    def recover() -> None:
        # Forks of this process run this function as well.
        if os.getpid() == process and os.getppid() != supervisor:
            begin_recovery(settings)

    atexit.register(recover)
    terminate_with_parent(supervisor)


@run.command()
def processor() -> None:
    """Claim messages and run agents.

    Runs until SIGTERM or Ctrl-C.

    \b
    Example:
      bullpen run processor
    """
    with _service_store("processor") as store:
        with keep_imports():
            from bullpen.processor import main

        main.run(store)


@run.command()
def scheduler() -> None:
    """Run schedules, heartbeats and maintenance jobs.

    Runs until SIGTERM or Ctrl-C.

    \b
    Example:
      bullpen run scheduler
    """
    with _service_store("scheduler") as store:
        with keep_imports():
            from bullpen.scheduler import main

        main.run(store)


@run.command()
def reports() -> None:
    """Compute the reports on a schedule.

    Each run is a process of its own: bullpen report run. The interval is the setting
    `reports_minutes`. Runs until SIGTERM or Ctrl-C.

    \b
    Example:
      bullpen run reports
    """
    with _service_store("reports") as store:
        with keep_imports():
            from bullpen.reports import periodic_run

        periodic_run.run(store)


@run.command()
@click.argument("name")
@click.option("--check", is_flag=True, hidden=True, help="Only check the settings, and end.")
@click.option("--probe", metavar="ID", default="", hidden=True, help="Chat for further tests.")
@click.pass_obj
def channel(settings: Settings, name: str, check: bool, probe: str) -> None:
    """Run the client of a channel.

    The client receives people's messages and delivers responses. NAME is a channel or one of its
    accounts, such as slack-sage. Runs until SIGTERM or Ctrl-C.

    \b
    Examples:
      bullpen run channel telegram
      bullpen run channel slack-sage
    """
    with keep_imports():
        from bullpen.channels import main

    info = main.find_channel(name, settings)
    if check:
        print_json([asdict(each) for each in main.check_channel(settings, info, probe=probe)])
        return
    with _service_store(name) as store:
        main.run(store, info)


@run.command()
@click.pass_obj
def api(settings: Settings) -> None:
    """Serve the API.

    Runs until SIGTERM or Ctrl-C.

    \b
    Example:
      bullpen run api
    """
    with _single_instance(settings, "api"):
        # Before the imports, because the supervisor counts a start as successful after a second.
        check_api_address(settings)
        if not has_valid_database_url(settings):
            from bullpen.api import closed

            closed.run(settings)
            return
        with keep_imports():
            from bullpen.api import server

        server.run(settings)


@run.command()
@click.pass_obj
def guard(settings: Settings) -> None:
    """Pause services that crash repeatedly.

    The crash guard also notifies the owner. Only the supervisor can run it.

    \b
    Example:
      bullpen run guard
    """
    if not is_supervised(os.environ):
        raise click.UsageError("only the supervisor can run the guard")
    with _single_instance(settings, "guard"):
        with keep_imports():
            from bullpen.ops.services import crash_guard as process

        process.run(settings)


@run.command()
@click.pass_obj
def recovery(settings: Settings) -> None:
    """Restart the supervisor after it was killed.

    The services that it leaves behind start this command.

    \b
    Example:
      bullpen run recovery
    """
    with keep_imports():
        from bullpen.ops.services import recovery as process

    process.run(settings)


@contextmanager
def _service_store(name: str) -> Iterator[Store]:
    """The store of a service. Here an invalid setting is an error: limits must not be ignored."""
    settings = Settings.load(os.environ)
    with _single_instance(settings, name), closing(open_store(settings)) as store:
        yield store


@contextmanager
def _single_instance(settings: Settings, name: str) -> Iterator[None]:
    """Hold the service's lock under the supervisor; a service that a person starts needs none."""
    if not is_supervised(os.environ):
        yield
        return
    with service_lock(settings, name):
        record_settings(settings, name)
        yield
