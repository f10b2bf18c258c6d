"""The API in a process of its own, and someone who asks it."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import psutil
import requests

from bullpen.core.access.keys import Scope, add_key
from bullpen.core.settings import Settings
from bullpen.core.store.open import open_store
from tests.cli.command import PROGRAM, Bullpen
from tests.cli.warm import Service
from tests.ports import free_port

START_SECONDS = 120.0
LIMIT = 90.0
"""Longer than the longest wait that can be asked for."""

Process: TypeAlias = "subprocess.Popen[bytes] | Service"
Start: TypeAlias = Callable[[dict[str, str], Path], Process]


@dataclass
class Served:
    """A running API. `get`, `post` and the others ask it with the owner's token."""

    settings: Settings
    process: Process
    url: str
    log: Path
    token: str = ""
    session: requests.Session = field(default_factory=requests.Session)

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        token: str | None = None,
        **more: Any,  # noqa: ANN401 - whatever requests takes
    ) -> requests.Response:
        """One request; `token=""` sends none."""
        secret = self.token if token is None else token
        headers = {**({"Authorization": f"Bearer {secret}"} if secret else {})}
        headers.update(more.pop("headers", {}))
        if body is not None:
            more["data"] = json.dumps(body)
            headers.setdefault("Content-Type", "application/json")
        more.setdefault("timeout", LIMIT)
        return self.session.request(method, self.url + path, headers=headers, **more)

    def ok(self, method: str, path: str, body: object = None, **more: Any) -> Any:  # noqa: ANN401
        """The document of a request that must succeed."""
        response = self.ask(method, path, body, **more)
        assert response.status_code == 200, (response.status_code, response.text)
        return response.json()

    def get(self, path: str, **more: Any) -> Any:  # noqa: ANN401
        """What GET gives."""
        return self.ok("GET", path, **more)

    def post(self, path: str, body: object = None, **more: Any) -> Any:  # noqa: ANN401
        """What POST gives."""
        return self.ok("POST", path, body, **more)

    def refused(self, method: str, path: str, body: object = None, **more: Any) -> tuple[int, str]:  # noqa: ANN401
        """The status and code of a request that must not succeed."""
        response = self.ask(method, path, body, **more)
        error = response.json()
        assert set(error) == {"error", "code", "hint"}, error
        return response.status_code, error["code"]

    def key(self, *scopes: Scope, agents: tuple[str, ...] | None = None) -> str:
        """The secret of a new key."""
        store = open_store(self.settings)
        with store.write() as tx:
            secret = add_key(tx, "test", scopes, agents)[1]
        store.close()
        return secret

    def follow(self, link: str) -> requests.Response:
        """What a browser is answered that follows a login link; it knows the host by itself."""
        url = urlsplit(link)
        headers = {"Host": url.netloc}
        path = f"{url.path}?{url.query}"
        response = self.ask("GET", path, token="", headers=headers, allow_redirects=False)
        self.session.cookies.clear()
        return response

    def browser(self, **more: Any) -> dict[str, str]:  # noqa: ANN401 - as for `post`
        """The headers of a browser that was let in by a link; `more` is for its request."""
        link = self.post("/api/login-links", **more)["url"]
        came = self.follow(link)
        assert came.status_code == 302, came.text
        cookie = came.headers["Set-Cookie"].partition(";")[0]
        return {"Host": urlsplit(link).netloc, "Cookie": cookie}

    @property
    def workers(self) -> list[psutil.Process]:
        """The processes that serve."""
        return psutil.Process(self.process.pid).children()


def start_api(environ: dict[str, str], log: Path) -> Process:
    """Start the API as a person does, in a new interpreter."""
    with log.open("ab") as out:
        command = [*PROGRAM, "run", "api"]
        return subprocess.Popen(command, env=environ, stdout=out, stderr=out)


def fork_api(environ: dict[str, str], log: Path) -> Process:
    """Start the API in a process that has loaded it."""
    return Service(["run", "api"], environ, log)


@contextmanager
def serving(settings: Settings, start: Start = fork_api, /, **more: str) -> Iterator[Served]:
    """The API at work on this home, ended by its process id."""
    port = free_port()
    environ = Bullpen(settings.home).environment(
        BULLPEN_API_PORT=str(port),
        BULLPEN_WORKSPACE=str(settings.workspace),
        BULLPEN_DATABASE_URL=settings.database_url,
        **more,
    )
    log = settings.home / "api.log"
    process = start(environ, log)
    served = Served(settings, process, f"http://127.0.0.1:{port}", log)
    try:
        _wait(served)
        yield served
        served.session.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT) == 0, log.read_text()
    finally:
        _kill(process)


def _wait(served: Served) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        assert served.process.poll() is None, served.log.read_text()
        try:
            if served.session.get(f"{served.url}/readyz", timeout=LIMIT).status_code == 200:
                break
        except requests.RequestException:
            pass
        assert time.monotonic() < deadline, served.log.read_text()
        time.sleep(0.05)
    served.token = served.settings.token_file.read_text().strip()


def _kill(process: Process) -> None:
    if process.poll() is None:
        kill_family(process)
    process.wait(LIMIT)


def kill_family(process: Process) -> None:
    """Kill a process that was not waited for, and all below it; none has time for another child."""
    parent = psutil.Process(process.pid)
    parent.suspend()
    family = [parent, *parent.children(recursive=True)]
    for each in family:
        with suppress(psutil.NoSuchProcess):
            each.kill()
    psutil.wait_procs(family[1:], LIMIT)
    process.wait(LIMIT)
