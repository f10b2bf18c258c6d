"""bullpen up: prepare the home, start the services and wait until they are ready."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from urllib.parse import urlsplit

import click

from bullpen.cli.command import Result, command, json_requested, print_notes, write_transaction
from bullpen.cli.errors import print_error
from bullpen.cli.logs import new_lines
from bullpen.cli.main import print_problems
from bullpen.cli.output import echo
from bullpen.cli.status import foreign_listener, last_words, print_services
from bullpen.core.background import StopSignals
from bullpen.core.clock import poll_until
from bullpen.core.company import add_agent
from bullpen.core.errors import BullpenError, RunsAlready, ServiceFailed
from bullpen.core.logs import LogFollower
from bullpen.core.network import api_url
from bullpen.core.registry import PROVIDERS
from bullpen.core.roster.agents import ECHO, Agent, find_agent
from bullpen.core.settings import Settings
from bullpen.core.settings.parse import load_lenient
from bullpen.core.store import open
from bullpen.core.store.base import Store
from bullpen.core.store.open import has_valid_database_url, open_store
from bullpen.core.store.sqlite import SqliteStore
from bullpen.ops.services.add import add_new_services
from bullpen.ops.services.launch import launch, lock_holders, start_lock
from bullpen.ops.services.programs import (
    list_programs,
    make_directories,
    programs_set_up,
    write_channel_programs,
)
from bullpen.ops.services.recovery import SUPERVISOR_SECONDS, end_orphaned_services
from bullpen.ops.services.search_path import record_at_start, record_change
from bullpen.ops.services.supervisor import DOWN_STATES, RUNNING, Service, Supervisor

API = "api"
ALIVE, READY = "/healthz", "/readyz"
STOP_SECONDS = 30.0
START_SECONDS = 60.0
STATE_POLL_SECONDS = 0.05
HTTP_SECONDS = 2.0
SLOW_SECONDS = 30.0
"""An API that becomes ready within this time is slow, and is not restarted."""
REASON_LINES = 2
LOG_POLL_SECONDS = 0.2


PrintLine = Callable[[str], None]
"""Prints a line about the progress."""


def prepare(settings: Settings, tell: PrintLine) -> None:
    """Create the missing directories, database and agent, without questions."""
    make_directories(settings)
    if not has_valid_database_url(settings):
        return  # the API reports the error, and the other services do not start
    migrate_database(settings, tell)
    _ensure_agent(settings, tell)


def migrate_database(settings: Settings, tell: PrintLine) -> None:
    """Create the database, or upgrade it to this version's schema."""
    open.check_not_lost(settings)
    with closing(open_store(settings, check=False)) as store:
        if store.revision() == open.HEAD_REVISION:
            open.remember_database(settings)
            _tell_of_damage(store, tell)
            return
        from bullpen.ops.backup.create import upgrade_database

        done = upgrade_database(store)
    if done.before is None:
        tell("Created the database.")
    else:
        kept = f" Its backup: {done.backup}" if done.backup else ""
        tell(f"Upgraded the database from revision {done.before}.{kept}")


def _tell_of_damage(store: Store, tell: PrintLine) -> None:
    """Report damage that a quick check finds; the services start nevertheless."""
    if not isinstance(store, SqliteStore):
        return
    from bullpen.ops.doctor import database

    damage = database.find_damage(store, "quick_check", database.QUICK_SECONDS)
    if damage:
        tell(f"The database is damaged: {damage}\n  Next: {database.RESTORE}")


def _ensure_agent(settings: Settings, tell: PrintLine) -> None:
    """Add the default agent if there is none, with the first provider that is installed."""
    with write_transaction(settings) as tx:
        if find_agent(tx, settings.default_agent) is None:
            provider = _automatic_provider()
            add_agent(tx, Agent(id=settings.default_agent, provider=provider))
            tell(f"Created agent @{settings.default_agent} (provider: {provider}).")


def _automatic_provider() -> str:
    """The first provider whose program is installed, else `echo`."""
    for each in PROVIDERS.built_in.values():
        if each.automatic and each.program is not None and shutil.which(each.program):
            return each.name
    return ECHO


def wait_for_services(settings: Settings, supervisor: Supervisor) -> list[str]:
    """Wait until each service runs or has ended once; returns the services that are down."""
    first: dict[str, int] = {}
    ended: set[str] = set()
    running: set[str] = set()

    def settled() -> bool:
        services = supervisor.services()
        for each in services:
            again = each["pid"] and first.setdefault(each["name"], each["pid"]) != each["pid"]
            if again or each["state"] in DOWN_STATES:
                ended.add(each["name"])
        # A service takes its lock after it has read and validated its settings.
        held = lock_holders(settings)
        running.update(
            each["name"]
            for each in services
            if each["state"] == RUNNING and held.get(each["name"]) == each["pid"]
        )
        names = {each["name"] for each in services} - ended
        return names <= running and (API not in names or _api_answers(settings))

    if not poll_until(settled, START_SECONDS, STATE_POLL_SECONDS):
        ended.update({each["name"] for each in supervisor.services()} - running)
    return sorted(ended)


def start_stopped(settings: Settings, supervisor: Supervisor) -> None:
    """Start the services that are down, and restart an API that is not ready."""
    for each in supervisor.services():
        name = each["name"]
        if each["state"] == RUNNING and (
            name != API or _api_answers(settings, READY, SLOW_SECONDS)
        ):
            continue
        try:
            supervisor.stop(name, STOP_SECONDS)
            supervisor.start_nowait(name)
        except BullpenError as error:  # why it does not start is in its log
            print_error(f"{name}: {error}", error.hint, error.code)


def failure_reason(settings: Settings, name: str) -> Iterator[str]:
    """Lines for standard error: the end of the log of a service that did not start."""
    lines = last_words(settings, name, REASON_LINES)
    yield f"Error: {name} did not start" + (". The end of its log:" if lines else "")
    yield from (f"  {line}" for line in lines)
    yield f"  After fixing this, run: bullpen restart {name}"


def _api_answers(settings: Settings, path: str = ALIVE, seconds: float = HTTP_SECONDS) -> bool:
    url = urlsplit(api_url(settings))
    connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=seconds)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


@command(people_only="start Bullpen")
@click.option("--foreground", is_flag=True, help="Run in the foreground and print the logs.")
@click.option("--tmux", is_flag=True, help="Show agents and events in tmux.")
@click.option("--new-database", is_flag=True, help="Create a new database if the last one is lost.")
def up(settings: Settings, foreground: bool, tmux: bool, new_database: bool) -> Result:
    """Start the services in the background.

    Creates the home, the database and a first agent if they do not exist, without questions.
    Services that are already running keep running. The exit status is 3 if one does not start.

    \b
    Examples:
      bullpen up
      bullpen up --tmux
      bullpen up --foreground          # for containers and systemd
    """
    if foreground and (tmux or json_requested()):
        raise click.UsageError("--foreground prints the logs; --tmux and --json do not fit")
    _print_warnings()
    if new_database:
        open.forget_database(settings)
    if foreground:
        sys.exit(run_in_foreground(settings))
    again, failed = start_services(settings)
    services = Supervisor(settings).services()
    result = Result(
        {
            "running_already": again,
            "failed": failed,
            "api": None if API in failed else api_url(settings),
            "services": services,
        },
        show=lambda: _print_result(settings, services, again, failed),
        status=3 if failed else 0,
    )
    if not tmux:
        return result
    from bullpen.cli.tmux import open_session

    replace(result, status=0).print(json_requested())  # the terminal goes to tmux next
    open_session(settings)
    sys.exit(result.status)


def start_services(settings: Settings, *, stays: bool = True) -> tuple[bool, list[str]]:
    """Start the services; returns whether Bullpen was running, and the services that failed."""
    supervisor = Supervisor(settings)
    with start_lock(settings):
        again = supervisor.alive()
        if again:
            prepare(settings, _print_note)
            print_notes(record_change(settings, os.environ))
            add_new_services(settings, supervisor)
            start_stopped(settings, supervisor)
        else:
            start_supervisor(settings, stays=stays)
            if not poll_until(supervisor.alive, SUPERVISOR_SECONDS, STATE_POLL_SECONDS):
                raise ServiceFailed(
                    "the supervisor did not start",
                    hint=f"Read {settings.logs}/supervisord.log and supervisord.out.",
                )
        return again, wait_for_services(settings, supervisor)


def start_supervisor(settings: Settings, *, stays: bool = True) -> subprocess.Popen[bytes]:
    """Prepare the home and start the supervisor."""
    if Supervisor(settings).alive():
        raise RunsAlready("Bullpen is already running in this home")
    end_orphaned_services(settings, _print_note)
    prepare(settings, _print_note)
    write_channel_programs(settings)
    print_notes(record_at_start(settings, os.environ, foreground=not stays))
    return launch(settings, programs_set_up(settings), stays=stays)


def _print_result(
    settings: Settings, services: list[Service], again: bool, failed: list[str]
) -> None:
    if again:
        echo("Bullpen is already running.")
    print_services(services)
    for name in failed:
        print_notes(failure_reason(settings, name))
    if API not in failed:
        echo(f"API: {api_url(settings)}")
    elif foreign := foreign_listener(settings):
        print_notes((foreign.text, *(f"  {each}" for each in foreign.commands)))
    echo("Next: bullpen doctor" if failed else 'Next: bullpen send "hello"')


def _print_warnings() -> None:
    """Warn of unknown names in settings.toml; every command reports its errors."""
    _, problems = load_lenient(os.environ)
    print_problems((each for each in problems if each.warning), warnings=True)


def _print_note(text: str) -> None:
    echo(text, err=True)


def run_in_foreground(settings: Settings) -> int:
    """Run the services until SIGTERM, Ctrl-C or `down`; returns 1 if the supervisor died."""
    stop = StopSignals()
    with start_lock(settings):
        write_channel_programs(settings)
        names = [each.name for each in list_programs(settings)]
        followed = {name: LogFollower(settings.logs / f"{name}.log") for name in names}
        supervisor = start_supervisor(settings, stays=False)
    echo(f"Bullpen is running. API: {api_url(settings)}. Stop with Ctrl-C.", err=True)
    while not stop.wait(LOG_POLL_SECONDS) and supervisor.poll() is None:
        _print_new_lines(settings, followed)
    status = supervisor.poll()
    if status:
        echo("Error: the supervisor was killed; stopping its services", err=True)
        end_orphaned_services(settings, _print_note)
        return 1
    _stop(settings, supervisor, followed)
    return 0


def _stop(
    settings: Settings, supervisor: subprocess.Popen[bytes], followed: dict[str, LogFollower]
) -> None:
    """Let supervisord stop the services in order, unless it has; a second signal ends this."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    supervisor.terminate()
    while supervisor.poll() is None:
        _print_new_lines(settings, followed)
        try:
            supervisor.wait(LOG_POLL_SECONDS)
        except subprocess.TimeoutExpired:
            continue
    _print_new_lines(settings, followed)
    echo("Stopped Bullpen.", err=True)


def _print_new_lines(settings: Settings, followed: dict[str, LogFollower]) -> None:
    for name, line in new_lines(settings, followed):
        echo(f"{name:<9} | {line}")
