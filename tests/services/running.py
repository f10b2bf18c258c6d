"""What runs in a home: asked of the supervisor, and of the machine itself."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import psutil

from tests.cli.command import Bullpen


def pids(bullpen: Bullpen) -> dict[str, int]:
    """The processes of the services, as `bullpen status` knows them."""
    found = bullpen("status", "--json").json["services"]
    return {each["name"]: each["pid"] for each in found}


def begun_at(pid: int) -> float:
    """When a process began, in seconds since the machine did."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")


def supervisor(bullpen: Bullpen) -> int:
    """The supervisor's process."""
    return int((bullpen.home / "run" / "supervisord.pid").read_text())


def of_home(home: Path) -> list[psutil.Process]:
    """Every process that was started for this home and has not ended."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            lives = process.status() != psutil.STATUS_ZOMBIE
            if lives and process.environ().get("BULLPEN_HOME") == str(home):
                found.append(process)
    return found


def services_of(home: Path) -> list[str]:
    """The services that have a process in this home, each as often as it has one of its own."""
    found = []
    for process in of_home(home):
        with contextlib.suppress(psutil.Error):
            words = process.cmdline()
            if "run" not in words:
                continue
            parent = process.parent()
            if (
                parent is None or parent.cmdline() != words
            ):  # gunicorn's own children are no service
                found.append(words[words.index("run") + 1])
    return sorted(found)
