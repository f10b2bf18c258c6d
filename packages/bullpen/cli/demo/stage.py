"""A home of its own for a demonstration: made, started, and at its end stopped whatever happens."""

from __future__ import annotations

import os
import signal
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from bullpen.cli.output import write_transaction
from bullpen.cli.services.down import stop_all
from bullpen.cli.services.prepared import migrate_database
from bullpen.cli.services.ready import wait_until
from bullpen.cli.services.up import start_services
from bullpen.core.errors import InTheWay, ServiceFailed
from bullpen.core.roster.agent import Agent
from bullpen.core.roster.agents import add_agent
from bullpen.core.roster.team import Team
from bullpen.core.roster.teams import add_team
from bullpen.core.services.directories import make_directories
from bullpen.core.services.supervisor import Supervisor
from bullpen.core.settings import ENVIRONMENT_PREFIX, Settings
from bullpen.core.settings_file import SettingsFile
from bullpen.core.settings_problems import load_lenient

TEAM = "dev"
AGENTS = ("coder", "reviewer", "writer")
PLUGIN_FILE = Path(__file__).with_name("lines.py")
BEGUN_SECONDS = 5.0
REQUIRED_SERVICES = ("processor", "scheduler")


def create_home(given: Path | None) -> Path:
    """An empty directory: a new one below the directory of temporary files, or the one given."""
    if given is None:
        return Path(tempfile.mkdtemp(prefix="bullpen-demo-"))
    home = given.expanduser().absolute()
    if home.exists() and (not home.is_dir() or any(home.iterdir())):
        raise InTheWay(
            f"{home} is not empty: the demonstration has a home of its own",
            hint="Give a directory that does not exist yet, or leave --home away.",
        )
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    return home


def populate_home(home: Path) -> Settings:
    """Put settings, three agents and their lines there; nothing of the caller's own reaches it."""
    for name in [each for each in os.environ if each.startswith(ENVIRONMENT_PREFIX)]:
        del os.environ[name]
    os.environ[f"{ENVIRONMENT_PREFIX}HOME"] = str(home)
    file = SettingsFile(home, {}, here=True)
    with file.locked():
        file.write(
            file.check(
                {
                    "workspace": str(home / "workspace"),
                    "api_port": _free_port(),
                    "api_processes": 1,
                    "default_agent": AGENTS[0],
                    "retry_base_seconds": 1,
                    "grace_seconds": 1,
                }
            )
        )
    settings, _ = load_lenient(os.environ)
    make_directories(settings)
    plugins = home / "plugins"
    plugins.mkdir(mode=0o700)
    (plugins / PLUGIN_FILE.name).write_text(
        PLUGIN_FILE.read_text(encoding="utf-8"), encoding="utf-8"
    )
    migrate_database(settings, lambda _: None)
    with write_transaction(settings) as tx:
        for each in AGENTS:
            add_agent(tx, Agent(id=each))
        add_team(tx, Team(id=TEAM, leader=AGENTS[0], members=AGENTS))
    return settings


@contextmanager
def running_services(settings: Settings) -> Iterator[list[str]]:
    """Its services run in this block, and end with it: by Ctrl-C, too, and by a kill."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    begun = False
    try:
        _, failed = start_services(settings, stays=False)
        begun = True
        if any(each in failed for each in REQUIRED_SERVICES):
            raise ServiceFailed(
                f"{', '.join(failed)} of the demonstration do not run",
                hint=f"Look at the logs in {settings.logs}.",
            )
        yield failed
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # it is ending
        if not begun:
            wait_until(Supervisor(settings).alive, BEGUN_SECONDS)
        stop_all(settings)
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _interrupt(number: int, _: FrameType | None) -> None:
    raise KeyboardInterrupt


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port
