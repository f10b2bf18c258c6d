"""The API under a real supervisor, beside programs that stand for channels."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests

from bullpen.core.settings import Settings
from bullpen.ops.services.launch import supervisor_command, supervisor_environment
from bullpen.ops.services.programs import make_directories, supervisor_config
from tests.api.served import LIMIT, START_SECONDS, kill_family
from tests.cli.command import Bullpen
from tests.ports import free_port
from tests.stores import Stores

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """[program:{name}]
command={command}
autostart={autostart}
autorestart=unexpected
startsecs={seconds}
startretries=0
stopasgroup=true
stdout_logfile=%(ENV_BULLPEN_HOME)s/logs/{name}.log
redirect_stderr=true
"""


class Supervised:
    """An API, a channel that runs, one that is off, and one that cannot start."""

    def __init__(self, settings: Settings, url: str) -> None:
        self.settings = settings
        self.url = url

    def ask(self, method: str, path: str, token: str = "") -> requests.Response:
        """One request with the owner's token, or another key."""
        secret = token or self.settings.token_file.read_text().strip()
        headers = {"Authorization": f"Bearer {secret}"}
        return requests.request(method, self.url + path, headers=headers, timeout=LIMIT)

    def ok(self, method: str, path: str) -> Any:  # noqa: ANN401 - whatever it answers
        """The document of a request that must succeed."""
        response = self.ask(method, path)
        assert response.status_code == 200, (response.status_code, response.text)
        return response.json()

    def services(self) -> dict[str, Any]:
        """The services by name."""
        return {each["name"]: each for each in self.ok("GET", "/api/services")}

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The services, when they are as they should be."""
        deadline = time.monotonic() + START_SECONDS
        found: dict[str, Any] = {}
        while time.monotonic() < deadline:
            try:
                found = self.services()
            except (OSError, AssertionError):
                found = {}
            if found and wanted(found):
                return found
            time.sleep(0.05)
        raise AssertionError(found)


@contextmanager
def supervised(stores: Stores) -> Iterator[Supervised]:
    """All of it in a home of its own, ended by process ids."""
    home = Path(tempfile.mkdtemp(prefix="bp-", dir="/tmp"))
    shutil.copy(stores.sqlite_template(), home / "bullpen.db")
    port = free_port()
    settings = Settings(home=home, workspace=home / "workspace", api_port=port)
    process = _start(settings)
    try:
        running = Supervised(settings, f"http://127.0.0.1:{port}")
        running.until(lambda found: {"api", "telegram"} <= _up(found))
        yield running
    finally:
        kill_family(process)
        shutil.rmtree(home)


def _up(found: dict[str, Any]) -> set[str]:
    return {name for name, each in found.items() if each["state"] == "RUNNING"}


def _start(settings: Settings) -> subprocess.Popen[bytes]:
    home = settings.home
    make_directories(settings)
    # What ends by itself is given so long that it has ended by then, however slow the machine is.
    programs = [
        ("telegram", "sleep 100000", "true", 1),
        ("signal", "sleep 100000", "false", 1),
        ("broken", "false", "false", 60),
    ]
    files = [str(ROOT / "services" / "api.conf")]
    for name, command, autostart, seconds in programs:
        path = home / f"{name}.conf"
        text = PROGRAM.format(name=name, command=command, autostart=autostart, seconds=seconds)
        path.write_text(text)
        files.append(str(path))
    config = home / "supervisord.conf"
    config.write_text(supervisor_config().read_text())
    environ = Bullpen(home).environment(BULLPEN_API_PORT=str(settings.api_port))
    with (home / "logs" / "supervisord.out").open("ab") as out:
        return subprocess.Popen(
            supervisor_command(config),
            env=supervisor_environment(settings, environ, " ".join(files)),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            cwd="/",
        )
