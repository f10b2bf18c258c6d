"""The crash guard: stops a service that dies again and again, and notifies the owner."""

from __future__ import annotations

import logging
import signal
import sys
import time
from collections import defaultdict, deque
from dataclasses import dataclass, field

from supervisor.childutils import get_headers, listener

from bullpen.core.errors import BullpenError
from bullpen.core.outbox.write import send_to_owner
from bullpen.core.settings import Settings
from bullpen.core.store.open import open_store
from bullpen.ops.services.supervisor import Supervisor

MAX_CRASHES = 10
CRASH_WINDOW_SECONDS = 600.0


@dataclass(slots=True)
class CrashCounter:
    """The ends of one service that nobody asked for, as far as they count."""

    ends: deque[float] = field(default_factory=deque)

    def ended(self, now: float) -> bool:
        """Count one; true if it is one too many within the time."""
        self.ends.append(now)
        while self.ends[0] <= now - CRASH_WINDOW_SECONDS:
            self.ends.popleft()
        return len(self.ends) >= MAX_CRASHES

    def forget(self) -> None:
        """Begin anew: somebody has looked after it."""
        self.ends.clear()


# The minder: stops a service that crashes again and again, and tells the owner. Never silent.
#
# It is a listener of supervisord's, which tells it of every change of a service on standard input
# and takes its word that it has heard on standard output.

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
