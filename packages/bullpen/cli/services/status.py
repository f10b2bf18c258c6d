"""bullpen status: what runs, and what has to be looked after."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict

import click

from bullpen.cli.output import as_json
from bullpen.cli.services.store_status import StoreStatus, print_store_status, read_store_status
from bullpen.cli.services.table import print_last_lines, print_services
from bullpen.core.backup.last import last_backup
from bullpen.core.errors import BullpenError
from bullpen.core.listening import api_url
from bullpen.core.services.supervisor import RUNNING, Service, Supervisor
from bullpen.core.settings import Settings

CLEAR_SCREEN = "\x1b[H\x1b[2J"


@click.command()
@click.option("--all", "-a", "every", is_flag=True, help="Show each system agent as well.")
@click.option("--watch", "-w", is_flag=True, help="Show it again and again, until Ctrl-C.")
@click.option(
    "--interval",
    "seconds",
    type=click.FloatRange(0.2, 3600),
    default=2.0,
    show_default=True,
    help="Seconds between two looks.",
)
@as_json
@click.pass_obj
def status(settings: Settings, every: bool, watch: bool, seconds: float, as_json: bool) -> None:
    """Show what runs, and what has to be looked after. The exit status is 3 if a service is down.

    \b
    Examples:
      bullpen status
      bullpen status --json
      bullpen status --watch
    """
    if watch and not as_json:
        _watch(settings, every, seconds)
    services = list_services(settings)
    found, why = _store_status(settings)
    if as_json:
        click.echo(json.dumps(_document(services, found)))
    else:
        _show(settings, services, found, why, every)
    if not services or any(each["state"] != RUNNING for each in services):
        sys.exit(3)


def list_services(settings: Settings) -> list[Service]:
    """The services; none where no supervisor answers."""
    supervisor = Supervisor(settings)
    return supervisor.services() if supervisor.alive() else []


def _watch(settings: Settings, every: bool, seconds: float) -> None:
    while True:
        services = list_services(settings)
        found, why = _store_status(settings)
        click.echo(CLEAR_SCREEN if sys.stdout.isatty() else "", nl=False)
        _show(settings, services, found, why, every)
        time.sleep(seconds)


def _document(services: list[Service], found: StoreStatus | None) -> dict[str, object]:
    return {
        "services": services,
        "queue": None if found is None else asdict(found.queue),
        "system_agents": None if found is None else [asdict(each) for each in found.agents],
        "unread": None if found is None else found.unread,
        "held_back": None if found is None or found.hold is None else asdict(found.hold),
    }


def _store_status(settings: Settings) -> tuple[StoreStatus | None, str]:
    """What it has to say; nothing, and why, without a database."""
    try:
        return read_store_status(settings), ""
    except BullpenError as error:
        return None, f"{error} ({error.hint})"


def _show(
    settings: Settings, services: list[Service], found: StoreStatus | None, why: str, every: bool
) -> None:
    if services:
        print_services(services)
        print_last_lines(settings, services)
        click.echo(f"The API is at {api_url(settings)}\n")
    else:
        click.echo("Bullpen does not run. Next: bullpen up\n")
    if found is None:
        click.echo(f"The store is not known: {why}")
    else:
        print_store_status(found, last_backup(settings), every)
