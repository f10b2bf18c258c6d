"""Restart the supervisor after it was killed, and end its orphaned services.

The system sends its services a signal when it ends. Each service then starts a process
`bullpen run recovery`, and one of these processes restarts the supervisor.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO

from bullpen.core.clock import poll_until
from bullpen.core.errors import BullpenError, RunsAlready
from bullpen.core.logs import LOG_SUFFIX
from bullpen.core.settings import Settings
from bullpen.ops.services import SUPERVISOR_VARIABLE
from bullpen.ops.services.launch import (
    end_orphans,
    find_orphans,
    launch,
    recovery_file,
    service_lock,
    start_lock,
)
from bullpen.ops.services.programs import programs_set_up
from bullpen.ops.services.supervisor import Supervisor

log = logging.getLogger(__name__)

RECOVERY = "recovery"
SHORT_LIFE_SECONDS = 10.0
"""A supervisor that ran for less is restarted after a pause."""
PAUSE_SECONDS, MAX_PAUSE_SECONDS = 2.0, 60.0
"""The pause between two attempts, at first and at most."""
SUPERVISOR_SECONDS = 30.0
POLL_SECONDS = 0.05


def begin_recovery(settings: Settings) -> None:
    """Start a separate process that restarts the supervisor, because this service is ending."""
    if not recovery_file(settings).exists():  # started in the foreground, or stopped by a person
        return
    try:
        log_file: int | IO[bytes] = (settings.logs / f"guard{LOG_SUFFIX}").open("ab")
    except OSError:
        log_file = subprocess.DEVNULL
    environ = {name: text for name, text in os.environ.items() if not _is_of_supervisor(name)}
    subprocess.Popen(
        [Path(sys.executable).parent / "bullpen", "run", RECOVERY],
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=log_file,
        stderr=log_file,
        start_new_session=True,
        cwd="/",
    )


def _is_of_supervisor(variable: str) -> bool:
    return variable == SUPERVISOR_VARIABLE or variable.startswith("SUPERVISOR_")


def run(settings: Settings) -> None:
    """Restart the supervisor, with retries; only one process does it."""
    try:
        with service_lock(settings, RECOVERY):
            log.warning("the supervisor was killed; restarting it")
            age = time.time() - recovery_file(settings).stat().st_mtime
            if 0 <= age < SHORT_LIFE_SECONDS:
                time.sleep(PAUSE_SECONDS)
            pause = PAUSE_SECONDS
            while not _recovered(settings):
                time.sleep(pause)
                pause = min(2 * pause, MAX_PAUSE_SECONDS)
    except (RunsAlready, FileNotFoundError):
        return  # another process does it, or a person stopped Bullpen


def _recovered(settings: Settings) -> bool:
    """Whether the supervisor runs now, or must not run any more."""
    supervisor = Supervisor(settings)
    try:
        if supervisor.alive():
            return True
        # Before taking the lock, because this may take long, and a person's `up` has priority.
        end_orphaned_services(settings, log.warning)
        with start_lock(settings):
            if not recovery_file(settings).exists() or supervisor.alive():
                return True
            end_orphaned_services(settings, log.warning)
            launch(settings, programs_set_up(settings))
            begun = partial(_has_begun, supervisor)
            return bool(poll_until(begun, SUPERVISOR_SECONDS, POLL_SECONDS))
    except (BullpenError, OSError) as error:
        log.error("cannot start the supervisor yet: %s", error)
        return False


def _has_begun(supervisor: Supervisor) -> bool:
    """Whether the supervisor has started a service, which could start the next recovery."""
    try:
        return any(each["pid"] for each in supervisor.services())
    except BullpenError:
        return False


def end_orphaned_services(settings: Settings, tell: Callable[[str], None]) -> None:
    """End the services of an ended supervisor, because no service may run twice."""
    found = find_orphans(settings)
    orphans = {name: each for name, each in found.items() if each.pid != os.getpid()}
    if orphans:
        names = ", ".join(f"{name} ({each.pid})" for name, each in orphans.items())
        seconds = settings.grace_seconds
        tell(f"Stopping orphaned services of an earlier supervisor: {names} (up to {seconds} s).")
        end_orphans(orphans, seconds, tell)
