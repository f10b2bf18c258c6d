"""Control supervisord over its socket: state, start, stop and restart of services."""

from __future__ import annotations

import base64
import hashlib
import http.client
import secrets
import socket
import xmlrpc.client
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypedDict
from xml.parsers.expat import ExpatError

import psutil

from bullpen.core.clock import SECOND, poll_until
from bullpen.core.errors import NoSupervisor, Overloaded, ServiceFailed, UnknownService
from bullpen.core.files import replace_file
from bullpen.core.network import socket_directory
from bullpen.core.settings import Settings
from bullpen.ops.services.programs import RENAMED_SERVICES, REPORTS_SERVICE

CONTROL_USER = "bullpen"
CONTROL_KEY_FILE = "supervisor.key"


CORE_SERVICES = frozenset({"processor", "scheduler", "api", "guard"})
"""The services that every installation has."""

OWN_SERVICES = CORE_SERVICES | {REPORTS_SERVICE}
"""The services besides channels. Each channel has a service with its own name."""

RUNNING = "RUNNING"
DOWN_STATES = frozenset({"STOPPED", "EXITED", "FATAL", "BACKOFF", "UNKNOWN"})
"""States in which a service neither runs nor starts."""

STATE_POLL_SECONDS = 0.05
EXIT_POLL_SECONDS = 0.05
ANSWER_SECONDS = 10.0

FAILURES = (OSError, http.client.HTTPException, xmlrpc.client.Error, ExpatError)
"""The exceptions of the XML-RPC client if no supervisor answers."""

SHUTDOWN_STATE, BAD_NAME, ALREADY_STARTED, NOT_RUNNING, ALREADY_ADDED = 6, 10, 60, 70, 90
"""Fault codes of supervisord."""


class Service(TypedDict):
    """One service as the supervisor sees it."""

    name: str
    state: str
    pid: int
    seconds: int
    """Seconds since its start; 0 if it is down."""
    started_at: int
    """When it was last started, in milliseconds rounded down to the second; 0 if never."""


class Supervisor:
    """The supervisor of one home, whether it runs or not."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._pid_file = settings.run / "supervisord.pid"

    def alive(self) -> bool:
        """Whether there is a supervisor, even one that is slow to answer."""
        try:
            with self._server() as server:
                server.supervisor.getState()
        except (TimeoutError, BlockingIOError):
            return True
        except FAILURES:
            return False
        return True

    def running(self) -> bool:
        """Whether every service runs."""
        if not self.alive():
            return False
        services = self.services()
        return bool(services) and all(each["state"] == "RUNNING" for each in services)

    def services(self) -> list[Service]:
        """Each service and its state."""
        programs = self._programs()
        for each in programs:
            each["name"] = RENAMED_SERVICES.get(each["name"], each["name"])
        return programs

    def service(self, name: str) -> Service:
        """One service and its state."""
        for each in self.services():
            if each["name"] == name:
                return each
        raise UnknownService(f"service {name[:40]!r} does not exist")

    def start(self, name: str, seconds: float) -> Service:
        """Start a service unless it runs, and wait until it runs."""
        if self.service(name)["state"] in DOWN_STATES:
            self.start_nowait(name)
        found = self._wait(name, lambda state: state != "STARTING", seconds)
        if found["state"] in DOWN_STATES:
            raise ServiceFailed(f"{name} does not start: {found['state'].lower()}")
        return found

    def start_nowait(self, name: str) -> None:
        """Start a service without waiting for it."""
        with self._calling(ALREADY_STARTED) as server:
            server.supervisor.startProcess(self._program(name), False)

    def add(self, names: Sequence[str]) -> None:
        """Add services whose files were written since the start; each of them starts."""
        with self._calling() as server:
            server.supervisor.reloadConfig()
        for name in names:
            # A supervisor that was started before an upgrade may not look for files of others.
            with self._calling(ALREADY_ADDED, BAD_NAME) as server:
                server.supervisor.addProcessGroup(name)

    def stop(self, name: str, seconds: float) -> Service:
        """Stop a service and wait for its end, at most this time."""
        ended = DOWN_STATES - {"BACKOFF"}
        if self.service(name)["state"] not in ended:
            with self._calling(NOT_RUNNING) as server:
                server.supervisor.stopProcess(self._program(name), False)
        return self._wait(name, lambda state: state in ended, seconds)

    def restart(self, name: str, stop_seconds: float, start_seconds: float) -> Service:
        """Stop a service and start it again."""
        if self.stop(name, stop_seconds)["state"] not in DOWN_STATES:
            raise ServiceFailed(f"{name} did not stop within {stop_seconds:.0f} seconds")
        return self.start(name, start_seconds)

    def signal(self, name: str, signal: str) -> None:
        """Send a service a signal; if that ends it, the supervisor restarts it."""
        self.service(name)
        with self._calling(NOT_RUNNING) as server:
            server.supervisor.signalProcess(self._program(name), signal)

    def restart_all(self) -> None:
        """Restart every service, without waiting for it."""
        with self._calling() as server:
            server.supervisor.restart()

    def shutdown(self, seconds: float) -> bool:
        """Stop every service and the supervisor itself; false if that takes longer than this time.

        The supervisor answers every call with a fault while it stops, so wait for its process.
        """
        try:
            with self._calling() as server:
                process = psutil.Process(int(str(server.supervisor.getPID())))
                server.supervisor.shutdown()
        except psutil.NoSuchProcess:
            return True
        return not wait_for_exit([process], seconds)

    def _wait(self, name: str, wanted: Callable[[str], bool], seconds: float) -> Service:
        """The service as soon as it is in a wanted state, or after this time."""

        def in_state() -> Service | None:
            service = self.service(name)
            return service if wanted(service["state"]) else None

        return poll_until(in_state, seconds, STATE_POLL_SECONDS) or self.service(name)

    def _programs(self) -> list[Service]:
        """The services with the supervisor's names."""
        with self._calling() as server:
            programs = server.supervisor.getAllProcessInfo()
        assert isinstance(programs, list)
        return [
            Service(
                name=str(each["name"]),
                state=str(each["statename"]),
                pid=int(each["pid"]),
                seconds=max(0, int(each["now"]) - int(each["start"])) if each["pid"] else 0,
                started_at=int(each["start"]) * SECOND,
            )
            for each in programs
        ]

    def _program(self, name: str) -> str:
        """The supervisor's own name for a service."""
        for old, new in RENAMED_SERVICES.items():
            if name == new and any(each["name"] == old for each in self._programs()):
                return old
        return name

    @contextmanager
    def _calling(self, *expected: int) -> Iterator[xmlrpc.client.ServerProxy]:
        """Translate the faults of supervisord; expected faults are ignored."""
        try:
            with self._server() as server:
                yield server
        except xmlrpc.client.Fault as fault:
            if fault.faultCode in expected:
                return
            if fault.faultCode == SHUTDOWN_STATE:
                raise Overloaded("the supervisor is starting or stopping its services") from None
            if fault.faultCode == BAD_NAME:
                raise UnknownService(f"unknown service: {fault.faultString}") from None
            raise ServiceFailed(f"the supervisor refused: {fault.faultString}") from None
        except (TimeoutError, BlockingIOError):
            raise Overloaded(
                f"the supervisor did not answer within {ANSWER_SECONDS:.0f} seconds",
                hint="Try again. If it still does not answer, run:"
                f" kill -9 $(cat {self._pid_file}); bullpen up",
            ) from None
        except FAILURES as error:
            raise NoSupervisor(f"cannot connect to the supervisor: {error}") from None

    def _server(self) -> xmlrpc.client.ServerProxy:
        path = socket_directory(self._settings, make=False) / "supervisor.sock"
        transport = _Transport(str(path), read_control_secret(self._settings))
        return xmlrpc.client.ServerProxy("http://localhost", transport=transport)


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=ANSWER_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(ANSWER_SECONDS)
        self.sock.connect(self._path)


class _Transport(xmlrpc.client.Transport):
    def __init__(self, path: str, secret: str) -> None:
        known = base64.b64encode(f"{CONTROL_USER}:{secret}".encode()).decode()
        super().__init__(headers=[("Authorization", f"Basic {known}")])
        self._path = path

    def make_connection(self, host: object) -> http.client.HTTPConnection:
        made = _Connection(self._path)
        self._connection = str(host), made  # close() looks here
        return made


def create_control_secret(settings: Settings) -> str:
    """Create the supervisor's password in a private file; returns its hash for supervisord."""
    secret = secrets.token_urlsafe(32)
    replace_file(settings.run / CONTROL_KEY_FILE, secret.encode())
    # supervisord supports SHA-1 only, which reveals nothing about a secret of this length.
    return hashlib.sha1(secret.encode(), usedforsecurity=False).hexdigest()


def read_control_secret(settings: Settings) -> str:
    """The password of the last start; empty if there was none."""
    try:
        return (settings.run / CONTROL_KEY_FILE).read_text(encoding="utf-8")
    except OSError:
        return ""


# Waits for processes that are not children of this one. A zombie counts as ended: psutil would
# wait forever in a container whose first process adopts orphans and never reaps them.
def wait_for_exit(processes: Sequence[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Wait for processes to end; returns those that still run after this time."""

    def alive() -> list[psutil.Process]:
        return [each for each in processes if not _has_exited(each)]

    return [] if poll_until(lambda: not alive(), seconds, EXIT_POLL_SECONDS) else alive()


def _has_exited(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
