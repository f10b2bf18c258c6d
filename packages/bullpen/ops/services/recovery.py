"""Start the supervisor again after it was killed, and end what it left behind.

Its services end with it, by a signal of the system. Each then begins `bullpen run recovery`, a
process of its own, and one of these starts the supervisor again.
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
"""A supervisor that lived for less is started again after a pause."""
PAUSE_SECONDS, MAX_PAUSE_SECONDS = 2.0, 60.0
"""The pause between two attempts, at first and at most."""
SUPERVISOR_SECONDS = 30.0
POLL_SECONDS = 0.05


def begin_recovery(settings: Settings) -> None:
    """Let a process of its own start the supervisor again: this one, a service of it, ends."""
    if not recovery_file(settings).exists():  # the foreground's, or a person stopped Bullpen
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
    """Start the supervisor again, however often that fails at first; one process does it."""
    try:
        with service_lock(settings, RECOVERY):
            log.warning("the supervisor was killed; it is started again")
            age = time.time() - recovery_file(settings).stat().st_mtime
            if 0 <= age < SHORT_LIFE_SECONDS:
                time.sleep(PAUSE_SECONDS)
            pause = PAUSE_SECONDS
            while not _recovered(settings):
                time.sleep(pause)
                pause = min(2 * pause, MAX_PAUSE_SECONDS)
    except (RunsAlready, FileNotFoundError):
        return  # another one does it, or a person has stopped Bullpen


def _recovered(settings: Settings) -> bool:
    """Whether the supervisor runs now, or is not to run any more."""
    supervisor = Supervisor(settings)
    try:
        if supervisor.alive():
            return True
        # Before the lock is taken, because this may take long, and a person's `up` comes first.
        end_orphaned_services(settings, log.warning)
        with start_lock(settings):
            if not recovery_file(settings).exists() or supervisor.alive():
                return True
            end_orphaned_services(settings, log.warning)
            launch(settings, programs_set_up(settings))
            begun = partial(_has_begun, supervisor)
            return bool(poll_until(begun, SUPERVISOR_SECONDS, POLL_SECONDS))
    except (BullpenError, OSError) as error:
        log.error("the supervisor cannot be started yet: %s", error)
        return False


def _has_begun(supervisor: Supervisor) -> bool:
    """Whether the supervisor has started a service, which would begin the next recovery."""
    try:
        return any(each["pid"] for each in supervisor.services())
    except BullpenError:
        return False


def end_orphaned_services(settings: Settings, tell: Callable[[str], None]) -> None:
    """End the services that a dead supervisor left: none may ever run twice."""
    found = find_orphans(settings)
    orphans = {name: each for name, each in found.items() if each.pid != os.getpid()}
    if orphans:
        names = ", ".join(f"{name} ({each.pid})" for name, each in orphans.items())
        seconds = settings.grace_seconds
        tell(f"An earlier supervisor is gone and left {names}; they get {seconds} s to end.")
        end_orphans(orphans, seconds, tell)
