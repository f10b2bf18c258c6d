"""Checks of the supervisor and its services: down, crashing, duplicate, orphaned, unresponsive."""

from __future__ import annotations

import http.client
import re
import socket
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from bullpen.core.clock import MINUTE, SECOND
from bullpen.core.logs import last_lines
from bullpen.core.network import api_url
from bullpen.core.text import format_count
from bullpen.ops.doctor.check import PASSED, Fix, Problem, Severity, Verdict, check, skipped
from bullpen.ops.doctor.installation import Installation, Process
from bullpen.ops.services.launch import end_orphans, find_orphans
from bullpen.ops.services.supervisor import DOWN_STATES, RUNNING

STOPPED = "STOPPED"
LOG_LINES = 400
MAX_RESTARTS, RESTART_WINDOW_MS = 4, 10 * MINUTE
"""More starts than this within the window are a crash loop."""
END_SECONDS = 30.0
ANSWER_SECONDS = 1.5

_SPAWNED = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d+ INFO spawned: '([^']+)'")
_WAKE = re.compile(r"wake-(\d+)-[0-9a-f]+\.sock")


def supervisors(installation: Installation) -> list[Process]:
    """The supervisors of this home."""
    return [each for each in installation.processes if each.ours and each.is_supervisor]


def service_processes(installation: Installation) -> list[Process]:
    """The processes of this home's services, without their forks."""
    found = {each.pid: each for each in installation.processes if each.ours and each.service}
    return [each for each in found.values() if each.parent not in found]


@check("service.supervisor", Severity.INFO)
def supervisor(installation: Installation) -> Problem | Verdict:
    """Bullpen is not running, or its supervisor does not answer."""
    if installation.services is not None:
        return PASSED
    found = supervisors(installation)
    if found:
        return Problem(
            text=f"the supervisor {found[0]} does not answer",
            remedy=f"kill {found[0].pid}; then bullpen up",
            severity=Severity.CRITICAL,
        )
    if not installation.home.is_dir():
        return skipped("there is no home yet")
    return Problem(text="Bullpen is not running", remedy="bullpen up")


@check("service.down", Severity.CRITICAL)
def down(installation: Installation) -> Problem | Verdict:
    """A service is down while the others run."""
    if installation.services is None:
        return skipped("Bullpen is not running")
    asleep = [each for each in installation.services if each["state"] in DOWN_STATES]
    if not asleep:
        return PASSED
    by_hand = all(each["state"] == STOPPED for each in asleep)
    told = ", ".join(f"{each['name']} ({each['state'].lower()})" for each in asleep)
    name = asleep[0]["name"]
    return Problem(
        text=f"not running: {told}",
        remedy=f"bullpen restart {name}"
        if by_hand
        else f"bullpen logs {name} shows the cause; bullpen restart {name}",
        severity=Severity.WARNING if by_hand else None,
    )


@check("service.crash_loop", Severity.WARNING)
def crash_loop(installation: Installation) -> Problem | Verdict:
    """A service crashes and is restarted repeatedly."""
    if installation.services is None:
        return skipped("Bullpen is not running")
    log = installation.settings.logs / "supervisord.log"
    if not log.exists():
        return PASSED
    counts: dict[str, int] = {}
    for line in last_lines(log, LOG_LINES):
        found = _SPAWNED.match(line)
        if found and installation.now - _moment(found[1]) < RESTART_WINDOW_MS:
            counts[found[2]] = counts.get(found[2], 0) + 1
    often = {name: count for name, count in counts.items() if count >= MAX_RESTARTS}
    if not often:
        return PASSED
    name, count = max(often.items(), key=lambda each: each[1])
    return Problem(
        text=f"restarted repeatedly: {', '.join(sorted(often))}; {name} started {count} times"
        " within 10 minutes",
        remedy=f"bullpen logs {name}",
    )


def _moment(text: str) -> int:
    # supervisord writes local time.
    return int(datetime.fromisoformat(text).timestamp()) * SECOND


@check("service.double", Severity.WARNING)
def duplicate_services(installation: Installation) -> Problem | Verdict:
    """The same service of this home runs twice."""
    by_name: dict[str, list[Process]] = {}
    for each in service_processes(installation):
        by_name.setdefault(each.service or "", []).append(each)
    twice = {name: found for name, found in by_name.items() if len(found) > 1}
    many = supervisors(installation)
    if len(many) > 1:
        twice["supervisor"] = many
    if not twice:
        return PASSED
    told = "; ".join(
        f"{name}: processes {', '.join(str(each.pid) for each in found)}"
        for name, found in sorted(twice.items())
    )
    return Problem(text=f"running more than once: {told}", remedy="bullpen down; bullpen up")


@check("service.leftovers", Severity.WARNING)
def orphaned_services(installation: Installation) -> Problem | Verdict:
    """Services run without a supervisor, which would restart and stop them."""
    if installation.services is not None or supervisors(installation):
        return PASSED
    found = service_processes(installation)
    if not found:
        return PASSED
    return Problem(
        text="running without a supervisor: "
        + ", ".join(f"{each.service} (process {each.pid})" for each in found),
        remedy="bullpen up ends them and starts all services; end a service that you started"
        " yourself with Ctrl-C",
        fix=_end_orphans(installation),
    )


def _end_orphans(installation: Installation) -> Fix | None:
    """The fix that ends them; it ends only processes that hold a lock of this home."""
    held = find_orphans(installation.settings)
    if not held:
        return None

    def apply() -> None:
        end_orphans(find_orphans(installation.settings), END_SECONDS, lambda _: None)

    return Fix(
        steps=tuple(f"end the {name}: kill {each.pid}" for name, each in held.items()), apply=apply
    )


@check("service.stale_files", Severity.INFO)
def stale_files(installation: Installation) -> Problem | Verdict:
    """Sockets and process id files of ended processes remain."""
    found = [*_stale_sockets(installation), *_stale_pids(installation)]
    if not found:
        return PASSED

    def apply() -> None:
        # Searched again, because a process may have started meanwhile.
        for each in (*_stale_sockets(installation), *_stale_pids(installation)):
            each.unlink(missing_ok=True)

    return Problem(
        text=f"{format_count(len(found), 'file')} of ended processes"
        f" {'remains' if len(found) == 1 else 'remain'}, for example {found[0].name}",
        remedy="bullpen doctor --fix; the files are harmless",
        fix=Fix(steps=tuple(f"rm {each}" for each in found), apply=apply),
    )


def _stale_sockets(installation: Installation) -> list[Path]:
    directory = installation.settings.sockets
    if not directory.is_dir():
        return []
    stale = []
    for each in sorted(directory.glob("*.sock")):
        wake = _WAKE.fullmatch(each.name)
        gone = wake is not None and not psutil.pid_exists(int(wake[1]))
        if gone or (each.name == "supervisor.sock" and not _has_listener(each)):
            stale.append(each)
    return stale


def _has_listener(path: Path) -> bool:
    """Whether a process listens on the socket, even a slow one."""
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as asking:
        asking.settimeout(ANSWER_SECONDS)
        try:
            asking.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:
            return True
    return True


def _stale_pids(installation: Installation) -> list[Path]:
    path = installation.settings.run / "supervisord.pid"
    with suppress(OSError, ValueError):
        if not psutil.pid_exists(int(path.read_text(encoding="utf-8"))):
            return [path]
    return []


@check("service.api_silent", Severity.CRITICAL)
def api_silent(installation: Installation) -> Problem | Verdict:
    """The API is running and does not answer."""
    running = {each["name"] for each in installation.services or () if each["state"] == RUNNING}
    if "api" not in running:
        return skipped("the API is not running")
    where = urlsplit(api_url(installation.settings))
    asking = http.client.HTTPConnection(where.hostname or "", where.port, timeout=ANSWER_SECONDS)
    with closing(asking):
        try:
            asking.request("GET", "/healthz")
            status = asking.getresponse().status
        except (OSError, http.client.HTTPException) as error:
            said = str(error) or type(error).__name__
        else:
            if status == http.HTTPStatus.OK:
                return PASSED
            said = f"status {status}"
    return Problem(
        text=f"the API is running and does not answer at {api_url(installation.settings)}: {said}",
        remedy="bullpen logs api; bullpen restart api",
    )


CHECKS = (
    supervisor,
    down,
    crash_loop,
    duplicate_services,
    orphaned_services,
    stale_files,
    api_silent,
)
