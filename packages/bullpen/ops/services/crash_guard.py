"""The crash guard: stops a service that crashes again and again, and notifies the owner.

It is an event listener of supervisord, which writes every change of a service to its standard input
and reads the acknowledgement from its standard output.
"""

from __future__ import annotations

import logging
import signal
import sys
import time
from collections import defaultdict, deque
from dataclasses import dataclass, field

from supervisor.childutils import get_headers, listener

from bullpen.core.errors import BullpenError, Overloaded
from bullpen.core.outbox.write import send_to_owner
from bullpen.core.settings import Settings
from bullpen.core.store.open import open_store
from bullpen.ops.services.launch import start_lock
from bullpen.ops.services.supervisor import Supervisor

log = logging.getLogger(__name__)

MAX_CRASHES = 10
CRASH_WINDOW_SECONDS = 600.0
STOP_SECONDS = 60.0

EXITED, FATAL, STOPPED = "PROCESS_STATE_EXITED", "PROCESS_STATE_FATAL", "PROCESS_STATE_STOPPED"


@dataclass(slots=True)
class CrashCounter:
    """The recent crashes of one service."""

    times: deque[float] = field(default_factory=deque)

    def record(self, now: float) -> bool:
        """Count a crash; true if there were too many within the window."""
        self.times.append(now)
        while self.times[0] <= now - CRASH_WINDOW_SECONDS:
            self.times.popleft()
        return len(self.times) >= MAX_CRASHES

    def reset(self) -> None:
        """Forget the crashes so far."""
        self.times.clear()


class CrashGuard:
    """Watches the services of one home."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._crashes: defaultdict[str, CrashCounter] = defaultdict(CrashCounter)

    def handle(self, event: str, service: str, now: float) -> None:
        """Act on one change of one service."""
        crashes = self._crashes[service]
        if event == STOPPED:  # by a person, who has seen to it
            crashes.reset()
        elif event == FATAL:
            self._notify_owner(service, "does not start")
        elif event == EXITED and crashes.record(now):
            crashes.reset()
            self._stop(service)

    def _stop(self, service: str) -> None:
        """Stop a service and tell the owner, unless a person starts or stops services just now."""
        try:
            with start_lock(self._settings, 0.0):
                stopped = self._try_stop(service)
        except Overloaded as error:
            log.warning("%s crashes and is not stopped: %s", service, error)
            return
        outcome = "is stopped" if stopped else "cannot be stopped"
        minutes = CRASH_WINDOW_SECONDS / 60
        self._notify_owner(
            service, f"crashed {MAX_CRASHES} times in {minutes:.0f} minutes and {outcome}"
        )

    def _try_stop(self, service: str) -> bool:
        """Stop a service; false if the supervisor refuses or does not answer."""
        try:
            Supervisor(self._settings).stop(service, STOP_SECONDS)
        except BullpenError as error:
            log.error("%s cannot be stopped: %s", service, error)
            return False
        return True

    def _notify_owner(self, service: str, what: str) -> None:
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
    """Handle the supervisor's events until it ends."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    guard = CrashGuard(settings)
    log.info("the crash guard is ready")
    while True:
        listener.ready(sys.stdout)
        line = sys.stdin.readline()
        if not line:
            return
        headers = get_headers(line)
        event = get_headers(sys.stdin.read(int(headers["len"])))
        guard.handle(headers["eventname"], event["processname"], time.monotonic())
        listener.ok(sys.stdout)
