"""Waiting until the services run, and saying why one does not."""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable
from urllib.parse import urlsplit

import click

from bullpen.cli.services.table import last_words
from bullpen.core.errors import BullpenError
from bullpen.core.listening import api_url
from bullpen.core.services.lock import lock_holders
from bullpen.core.services.supervisor import DOWN_STATES, RUNNING, Supervisor
from bullpen.core.settings import Settings

API = "api"
ALIVE, READY = "/healthz", "/readyz"
STOP_SECONDS = 30.0
START_SECONDS = 60.0
STATE_POLL_SECONDS = 0.05
HTTP_SECONDS = 2.0
SLOW_SECONDS = 30.0
"""One that takes less to say whether it is ready is slow, which is no reason to restart it."""
REASON_LINES = 2


def wait_until(condition: Callable[[], bool], seconds: float = START_SECONDS) -> bool:
    """Wait until it holds; false if it does not within the time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(STATE_POLL_SECONDS)
    return True


def wait_for_services(settings: Settings, supervisor: Supervisor) -> list[str]:
    """Wait until each service runs, or has ended once; gives those that do not run."""
    first: dict[str, int] = {}
    ended: set[str] = set()
    running: set[str] = set()

    def settled() -> bool:
        services = supervisor.services()
        for each in services:
            again = each["pid"] and first.setdefault(each["name"], each["pid"]) != each["pid"]
            if again or each["state"] in DOWN_STATES:
                ended.add(each["name"])
        # It holds its lock when it has read its settings and found nothing against them.
        held = lock_holders(settings)
        running.update(
            each["name"]
            for each in services
            if each["state"] == RUNNING and held.get(each["name"]) == each["pid"]
        )
        names = {each["name"] for each in services} - ended
        return names <= running and (API not in names or _api_answers(settings))

    if not wait_until(settled):
        ended.update({each["name"] for each in supervisor.services()} - running)
    return sorted(ended)


def start_stopped(settings: Settings, supervisor: Supervisor) -> None:
    """Start what was stopped, gave up, or still tries; and an API that is not ready."""
    for each in supervisor.services():
        name = each["name"]
        if each["state"] == RUNNING and (
            name != API or _api_answers(settings, READY, SLOW_SECONDS)
        ):
            continue
        try:
            supervisor.stop(name, STOP_SECONDS)
            supervisor.begin(name)
        except BullpenError as error:  # why it does not start is in its log
            click.echo(f"bullpen: {name}: {error}", err=True)


def print_failure_reason(settings: Settings, name: str) -> None:
    """The end of its log, where it says what hinders it."""
    click.echo(f"bullpen: {name} does not start; the end of its log:", err=True)
    for line in last_words(settings, name, REASON_LINES):
        click.echo(f"  {line}", err=True)
    click.echo(f"  Then: bullpen restart {name}", err=True)


def _api_answers(settings: Settings, path: str = ALIVE, seconds: float = HTTP_SECONDS) -> bool:
    """Whether the API serves."""
    where = urlsplit(api_url(settings))
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=seconds)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
