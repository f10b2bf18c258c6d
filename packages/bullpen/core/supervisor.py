"""Talks to supervisord over its Unix socket in the home."""

from __future__ import annotations

import http.client
import socket
import xmlrpc.client
from pathlib import Path
from typing import TypedDict

import psutil

from bullpen.core.settings import Settings

HERE = Path(__file__).resolve()


class Service(TypedDict):
    """One service as the supervisor sees it."""

    name: str
    state: str
    pid: int


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=10)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(10)
        self.sock.connect(self._path)


class _Transport(xmlrpc.client.Transport):
    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path

    def make_connection(self, host: object) -> http.client.HTTPConnection:
        return _Connection(self._path)


class Supervisor:
    """The supervisor of one home, which may run or not."""

    def __init__(self, settings: Settings) -> None:
        self._socket = str(settings.sockets / "supervisor.sock")

    @property
    def config(self) -> Path:
        """supervisord.conf: in the package where it is installed, else in the checkout."""
        beside = HERE.parents[1] / "deploy"
        return (beside if beside.is_dir() else HERE.parents[3] / "deploy") / "supervisord.conf"

    def alive(self) -> bool:
        """Whether a supervisor answers."""
        try:
            self._proxy().supervisor.getState()
        except (OSError, http.client.HTTPException, xmlrpc.client.Error):
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
        found = self._proxy().supervisor.getAllProcessInfo()
        assert isinstance(found, list)
        return [
            Service(name=str(each["name"]), state=str(each["statename"]), pid=int(each["pid"]))
            for each in found
        ]

    def shutdown(self, seconds: float) -> bool:
        """Stop every service and the supervisor itself; true when it is gone within the time.

        While it stops it answers every question with a fault: so its process is waited for.
        """
        pid = self._proxy().supervisor.getPID()
        assert isinstance(pid, int)
        try:
            process = psutil.Process(pid)
            self._proxy().supervisor.shutdown()
            process.wait(seconds)
        except psutil.NoSuchProcess:
            return True
        except psutil.TimeoutExpired:
            return False
        return True

    def _proxy(self) -> xmlrpc.client.ServerProxy:
        return xmlrpc.client.ServerProxy("http://localhost", transport=_Transport(self._socket))
