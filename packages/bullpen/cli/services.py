"""bullpen up, down and status: the services under their supervisor."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from urllib.parse import urlsplit

import click

from bullpen.cli.output import writing
from bullpen.cli.status_shown import StoreStatus, show_store_status, store_status
from bullpen.core.errors import BullpenError, UnknownService
from bullpen.core.listening import address
from bullpen.core.log_tail import log_tail
from bullpen.core.roster.agent import ECHO, Agent
from bullpen.core.roster.agents import add_agent
from bullpen.core.roster.find import find_agent
from bullpen.core.settings import Settings
from bullpen.core.sockets import socket_directory
from bullpen.core.supervisor import ASLEEP, RUNNING, Supervisor

START_SECONDS = 30.0
LOOK_SECONDS = 2.0
REASON_LINES = 2
STOP_SECONDS = 90.0


@click.command()
@click.pass_obj
def up(settings: Settings) -> None:
    """Start the services in the background. The exit status is 3 if one does not start.

    \b
    Example:
      bullpen up
    """
    _hire(settings)
    supervisor = Supervisor(settings)
    if supervisor.alive():
        click.echo("Bullpen runs already.")
    else:
        _start(settings, supervisor)
    failed = _failed(settings, supervisor)
    _show(supervisor)
    for name in failed:
        _say_why(settings, name)
    if "api" not in failed:
        click.echo(f"The API is at {address(settings)}")
    click.echo('Next: bullpen send "hello"')
    if failed:
        sys.exit(3)


@click.command()
@click.pass_obj
def down(settings: Settings) -> None:
    """Stop the services; runs that do not end in time go back to the queue.

    \b
    Example:
      bullpen down
    """
    supervisor = Supervisor(settings)
    if not supervisor.alive():
        click.echo("Bullpen does not run.")
        return
    if not supervisor.shutdown(STOP_SECONDS):
        click.echo("bullpen: the services did not stop in time", err=True)
        sys.exit(1)
    click.echo("Bullpen has stopped. Next: bullpen up")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def status(settings: Settings, as_json: bool) -> None:
    """Show each service and what keeps the store in order. The exit status is 3 if one is down.

    \b
    Example:
      bullpen status --json
    """
    supervisor = Supervisor(settings)
    services = supervisor.services() if supervisor.alive() else []
    found, why = _store_status(settings)
    if as_json:
        agents = None if found is None else [asdict(each) for each in found.agents]
        unread = None if found is None else found.unread
        click.echo(json.dumps({"services": services, "system_agents": agents, "unread": unread}))
    elif services:
        _show(supervisor)
        click.echo()
        if found is None:
            click.echo(f"The system agents are not known: {why}")
        else:
            show_store_status(found)
    else:
        click.echo("Bullpen does not run. Next: bullpen up")
    if not services or any(each["state"] != "RUNNING" for each in services):
        sys.exit(3)


def _store_status(settings: Settings) -> tuple[StoreStatus | None, str]:
    """What it has to say; nothing, and why, without a database."""
    try:
        return store_status(settings), ""
    except BullpenError as error:
        return None, f"{error} ({error.hint})"


def _hire(settings: Settings) -> None:
    """See to it that there is somebody to answer: a real one, if one is installed."""
    with writing(settings) as tx:
        if find_agent(tx, settings.default_agent) is None:
            installed = (name for name in ("claude", "codex") if shutil.which(name))
            add_agent(tx, Agent(id=settings.default_agent, provider=next(installed, ECHO)))


def _start(settings: Settings, supervisor: Supervisor) -> None:
    log = settings.home / "logs"
    log.mkdir(mode=0o700, parents=True, exist_ok=True)
    settings.run.mkdir(mode=0o700, parents=True, exist_ok=True)
    environ = {
        **os.environ,
        "BULLPEN_HOME": str(settings.home),
        "BULLPEN_BIN": str(Path(sys.executable).parent),
        "BULLPEN_SOCKETS": str(socket_directory(settings)),
    }
    with (log / "supervisord.out").open("ab") as out:
        subprocess.Popen(
            [
                *(sys.executable, "-m", "supervisor.supervisord", "-c", str(supervisor.config)),
                # As root it asks to be told that this is meant.
                *(("-u", "root") if os.geteuid() == 0 else ()),
            ],
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            cwd="/",
        )
    if not _wait(supervisor.alive, START_SECONDS):
        click.echo(f"bullpen: the supervisor did not start; see {log}", err=True)
        sys.exit(1)


def _wait(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def _failed(settings: Settings, supervisor: Supervisor) -> list[str]:
    """Wait until each service runs, or has ended once; gives those that do not run."""
    first: dict[str, int] = {}
    ended: set[str] = set()
    running: set[str] = set()

    def settled() -> bool:
        services = supervisor.services()
        for each in services:
            again = each["pid"] and first.setdefault(each["name"], each["pid"]) != each["pid"]
            if again or each["state"] in ASLEEP:
                ended.add(each["name"])
        running.update(each["name"] for each in services if each["state"] == RUNNING)
        names = {each["name"] for each in services} - ended
        return names <= running and ("api" not in names or _answers(settings))

    if not _wait(settled, START_SECONDS):
        ended.update({each["name"] for each in supervisor.services()} - running)
    return sorted(ended)


def _answers(settings: Settings) -> bool:
    """Whether the API serves."""
    where = urlsplit(address(settings))
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=LOOK_SECONDS)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _say_why(settings: Settings, name: str) -> None:
    """The end of its log, where it says what hinders it."""
    click.echo(f"bullpen: {name} does not start; the end of its log:", err=True)
    try:
        lines = log_tail(settings, name, REASON_LINES, settings.secrets())
    except UnknownService:
        lines = []
    for line in lines:
        click.echo(f"  {line}", err=True)


def _show(supervisor: Supervisor) -> None:
    for each in supervisor.services():
        click.echo(f"{each['name']:<12} {each['state']:<9} pid {each['pid']}")
