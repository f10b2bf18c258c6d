"""The minder: stops a service that crashes again and again, and tells the owner. Never silent.

It is a listener of supervisord's, which tells it of every change of a service on standard input
and takes its word that it has heard on standard output.
"""

from __future__ import annotations

import logging
import signal
import sys
import time
from collections import defaultdict

from supervisor.childutils import get_headers, listener

from bullpen.core.errors import BullpenError
from bullpen.core.outbox.proactive import send_to_owner
from bullpen.core.services.crashes import CRASH_WINDOW_SECONDS, MAX_CRASHES, CrashCounter
from bullpen.core.services.supervisor import Supervisor
from bullpen.core.settings import Settings
from bullpen.core.store.open import open_store

log = logging.getLogger(__name__)

EXITED, FATAL, STOPPED = "PROCESS_STATE_EXITED", "PROCESS_STATE_FATAL", "PROCESS_STATE_STOPPED"
STOP_SECONDS = 60.0


class CrashGuard:
    """Hears what becomes of the services of one home."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._crashes: defaultdict[str, CrashCounter] = defaultdict(CrashCounter)

    def hear(self, event: str, service: str, now: float) -> None:
        """One change of one service."""
        if event == STOPPED:
            self._crashes[service].forget()
        elif event == FATAL:
            self._tell(service, "does not start")
        elif event == EXITED and self._crashes[service].ended(now):
            self._crashes[service].forget()
            minutes = CRASH_WINDOW_SECONDS / 60
            self._stop(service)
            self._tell(
                service, f"crashed {MAX_CRASHES} times in {minutes:.0f} minutes and is stopped"
            )

    def _stop(self, service: str) -> None:
        try:
            Supervisor(self._settings).stop(service, STOP_SECONDS)
        except BullpenError as error:
            log.error("%s cannot be stopped: %s", service, error)

    def _tell(self, service: str, what: str) -> None:
        log.error("%s %s", service, what)
        text = (
            f"The service {service} {what}. What waits for it stays. "
            f"`bullpen logs {service}` says why; `bullpen restart {service}` tries again."
        )
        try:
            store = open_store(self._settings)
            with store.write() as tx:
                send_to_owner(tx, text)
            store.close()
        except BullpenError as error:
            log.error("the owner cannot be told: %s (%s)", error, error.hint)


def run(settings: Settings) -> None:
    """Listen until the supervisor ends."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    minder = CrashGuard(settings)
    log.info("the minder is ready")
    while True:
        listener.ready(sys.stdout)
        line = sys.stdin.readline()
        if not line:
            return
        headers = get_headers(line)
        about = get_headers(sys.stdin.read(int(headers["len"])))
        minder.hear(headers["eventname"], about["processname"], time.monotonic())
        listener.ok(sys.stdout)
