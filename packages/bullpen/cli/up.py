"""bullpen up: prepare the home, start the services and wait until they are ready."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from urllib.parse import urlsplit

import click

from bullpen.cli.command import require_person, write_transaction
from bullpen.cli.logs import new_lines
from bullpen.cli.main import print_problems
from bullpen.cli.output import as_json, print_json
from bullpen.cli.status import last_words, print_services
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
from bullpen.core.store.open import has_valid_database_url, open_store
from bullpen.ops.services.launch import end_orphans, find_orphans, launch, lock_holders, start_lock
from bullpen.ops.services.programs import list_programs, make_directories
from bullpen.ops.services.supervisor import DOWN_STATES, RUNNING, Supervisor

PrintLine = Callable[[str], None]


def prepare(settings: Settings, tell: PrintLine) -> None:
    """Make what is missing; nobody is asked anything, and what is there stays."""
    make_directories(settings)
    if not has_valid_database_url(settings):
        return  # the API says so, and the rest does not start
    migrate_database(settings, tell)
    _ensure_agent(settings, tell)


def end_orphaned_services(settings: Settings, tell: PrintLine) -> None:
    """End the services that a supervisor left behind: there may never be two of one."""
    found = find_orphans(settings)
    if found:
        names = ", ".join(f"{name} ({each.pid})" for name, each in found.items())
        seconds = settings.grace_seconds
        tell(f"An earlier supervisor is gone and left {names}; they get {seconds} s to end.")
        end_orphans(found, seconds, tell)


def migrate_database(settings: Settings, tell: PrintLine) -> None:
    """Make the database, or bring it to this version's schema."""
    with closing(open_store(settings, check=False)) as store:
        if store.revision() == open.HEAD_REVISION:
            return
        from bullpen.ops.backup.create import upgrade_database

        done = upgrade_database(store)
    if done.before is None:
        tell("The database is made.")
    else:
        kept = f"; what was is kept in {done.backup}" if done.backup else ""
        tell(f"The database is upgraded from revision {done.before}{kept}.")


def _ensure_agent(settings: Settings, tell: PrintLine) -> None:
    """See to it that there is somebody to answer: a real one, if one is installed."""
    with write_transaction(settings) as tx:
        if find_agent(tx, settings.default_agent) is None:
            provider = _automatic_provider()
            add_agent(tx, Agent(id=settings.default_agent, provider=provider))
            tell(f"@{settings.default_agent} is hired and answers with {provider}.")


def _automatic_provider() -> str:
    """The first provider whose program is installed, of those that need no choice of a model."""
    for each in PROVIDERS.built_in.values():
        if each.automatic and each.program is not None and shutil.which(each.program):
            return each.name
    return ECHO


API = "api"
ALIVE, READY = "/healthz", "/readyz"
STOP_SECONDS = 30.0
START_SECONDS = 60.0
STATE_POLL_SECONDS = 0.05
HTTP_SECONDS = 2.0
SLOW_SECONDS = 30.0
"""One that takes less to say whether it is ready is slow, which is no reason to restart it."""
REASON_LINES = 2


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

    if not poll_until(settled, START_SECONDS, STATE_POLL_SECONDS):
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


SUPERVISOR_SECONDS = 30.0


@click.command()
@click.option("--foreground", is_flag=True, help="Stay, show the logs, stop all at the end.")
@click.option("--tmux", is_flag=True, help="Watch them in tmux: status, processor, events, logs.")
@as_json
@click.pass_obj
def up(settings: Settings, foreground: bool, tmux: bool, as_json: bool) -> None:
    """Start the services in the background. The exit status is 3 if one does not start.

    What is missing is made: the home, the database, a first agent. Nothing is asked. What runs
    already goes on; what had stopped or given up is started again.

    \b
    Examples:
      bullpen up
      bullpen up --tmux
      bullpen up --foreground          for containers and systemd
    """
    require_person("start Bullpen")
    if foreground and (tmux or as_json):
        raise click.UsageError("--foreground shows the logs, and nothing else.")
    _say_problems()
    if foreground:
        sys.exit(run_in_foreground(settings))
    again, failed = start_services(settings)
    supervisor = Supervisor(settings)
    if as_json:
        print_json(
            {
                "running_already": again,
                "failed": failed,
                "api": None if "api" in failed else api_url(settings),
                "services": supervisor.services(),
            }
        )
    else:
        _print_result(settings, supervisor, again, failed)
    if tmux:
        from bullpen.cli.tmux import open_session

        open_session(settings)
    if failed:
        sys.exit(3)


def start_services(settings: Settings, *, stays: bool = True) -> tuple[bool, list[str]]:
    """Whether it ran already, and which services do not run in spite of it."""
    supervisor = Supervisor(settings)
    with start_lock(settings):
        again = supervisor.alive()
        if again:
            prepare(settings, _tell)
            start_stopped(settings, supervisor)
        else:
            start_supervisor(settings, stays=stays)
            if not poll_until(supervisor.alive, SUPERVISOR_SECONDS, STATE_POLL_SECONDS):
                raise ServiceFailed(
                    "the supervisor does not start",
                    hint=f"See {settings.logs / 'supervisord.log'}, and supervisord.out beside it.",
                )
        return again, wait_for_services(settings, supervisor)


def start_supervisor(settings: Settings, *, stays: bool = True) -> subprocess.Popen[bytes]:
    """See to what is missing and start the supervisor."""
    if Supervisor(settings).alive():
        raise RunsAlready("Bullpen runs already in this home")
    end_orphaned_services(settings, _tell)
    prepare(settings, _tell)
    services = [each for each in list_programs() if each.set_up(settings)]
    return launch(settings, services, stays=stays)


def _print_result(
    settings: Settings, supervisor: Supervisor, again: bool, failed: list[str]
) -> None:
    if again:
        click.echo("Bullpen runs already.")
    print_services(supervisor.services())
    for name in failed:
        print_failure_reason(settings, name)
    if "api" not in failed:
        click.echo(f"The API is at {api_url(settings)}")
    click.echo("Next: bullpen doctor" if failed else 'Next: bullpen send "hello"')


def _say_problems() -> None:
    """What of settings.toml has no meaning; what cannot be read every command says by itself."""
    _, problems = load_lenient(os.environ)
    print_problems((each for each in problems if each.warning), warnings=True)


def _tell(text: str) -> None:
    click.echo(text, err=True)


LOG_POLL_SECONDS = 0.2


def run_in_foreground(settings: Settings) -> int:
    """Run them until SIGTERM or Ctrl-C, and stop them in order; 1 if their supervisor died."""
    ending = StopSignals()
    with start_lock(settings):
        names = [each.name for each in list_programs()]
        followed = {name: LogFollower(settings.logs / f"{name}.log") for name in names}
        supervisor = start_supervisor(settings, stays=False)
    click.echo(f"Bullpen runs; its API is at {api_url(settings)}. Ctrl-C stops it.", err=True)
    while not ending.wait(LOG_POLL_SECONDS) and supervisor.poll() is None:
        _print_new_lines(settings, followed)
    died = supervisor.poll() is not None
    if died:
        click.echo("bullpen: the supervisor has died; its services are ended", err=True)
        end_orphaned_services(settings, lambda text: click.echo(text, err=True))
    else:
        _stop(settings, supervisor, followed)
    return int(died)


def _stop(
    settings: Settings, supervisor: subprocess.Popen[bytes], followed: dict[str, LogFollower]
) -> None:
    """As supervisord does it by itself: in order, each with its time. A second signal is for us."""
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
    click.echo("Bullpen has stopped.", err=True)


def _print_new_lines(settings: Settings, followed: dict[str, LogFollower]) -> None:
    for name, line in new_lines(settings, followed):
        click.echo(f"{name:<9} | {line}")
