"""The crash guard: pauses a service that crashes repeatedly, and notifies the owner.

A service that crashes repeatedly, or does not start, is restarted after a pause, which doubles
with each failure up to a limit.

It is an event listener of supervisord, which writes every state change of a service to its standard
input and reads the acknowledgement from its standard output.
"""

from __future__ import annotations

import json
import logging
import signal
import sys
import time
from collections import defaultdict, deque
from dataclasses import asdict, dataclass, field

from supervisor.childutils import get_headers, listener

from bullpen.core.errors import BullpenError, Overloaded
from bullpen.core.files import replace_file
from bullpen.core.outbox.write import send_to_owner
from bullpen.core.settings import Settings
from bullpen.core.store.open import open_store
from bullpen.ops.services.launch import PAUSES_FILE, start_lock
from bullpen.ops.services.supervisor import RUNNING, Supervisor

log = logging.getLogger(__name__)

MAX_CRASHES = 10
CRASH_WINDOW_SECONDS = 600.0
STOP_SECONDS = 60.0
PAUSE_SECONDS, MAX_PAUSE_SECONDS = 30.0, 600.0
"""The pause before a service is started again, at first and at most."""
CHECK_SECONDS = 60.0
"""How often all services are checked, besides the events: a killed guard misses some."""

EXITED, FATAL, STOPPED = "PROCESS_STATE_EXITED", "PROCESS_STATE_FATAL", "PROCESS_STATE_STOPPED"
TICK = "TICK_5"


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


@dataclass(frozen=True, slots=True)
class Pause:
    """The pause of a service that the guard stopped, or that did not start."""

    times: int
    """The number of pauses in a row."""
    until: float
    """The end, in seconds of the system's monotonic clock."""
    stopping: bool = False
    """Whether the event of the guard's own stop is still expected."""


class Pauses:
    """The pauses of one home's services, stored in a file, because the guard may be killed."""

    def __init__(self, settings: Settings) -> None:
        self._path = settings.run / PAUSES_FILE
        try:
            found = json.loads(self._path.read_bytes())
            self._pauses = {str(name): Pause(**each) for name, each in found.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            self._pauses = {}

    def __bool__(self) -> bool:
        return bool(self._pauses)

    def get(self, service: str) -> Pause | None:
        """The pause of a service, also one that has ended."""
        return self._pauses.get(service)

    def begin(self, service: str, now: float, *, stopping: bool = False) -> Pause:
        """Begin a pause, twice as long as the previous one."""
        before = self._pauses.get(service)
        times = 1 if before is None else before.times + 1
        seconds = min(PAUSE_SECONDS * 2 ** (min(times, 20) - 1), MAX_PAUSE_SECONDS)
        pause = Pause(times, now + seconds, stopping)
        self.put(service, pause)
        return pause

    def put(self, service: str, pause: Pause | None) -> None:
        """Change a pause; None removes it."""
        if pause is None:
            self._pauses.pop(service, None)
        else:
            self._pauses[service] = pause
        document = {name: asdict(each) for name, each in self._pauses.items()}
        try:
            replace_file(self._path, json.dumps(document).encode())
        except OSError as error:  # this guard keeps them in memory
            log.warning("cannot write %s: %s", self._path, error)


class CrashGuard:
    """Watches the services of one home."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._crashes: defaultdict[str, CrashCounter] = defaultdict(CrashCounter)
        self._pauses = Pauses(settings)
        self._check_at = 0.0

    def handle(self, event: str, service: str, now: float) -> None:
        """Handle a state change of a service, or a timer event."""
        if event == TICK:
            self._tick(now)
        elif event == STOPPED:
            self._stopped(service)
        elif event == FATAL:
            self._give_up(service, now)
        elif event == EXITED and self._crashes[service].record(now):
            self._crashes[service].reset()
            self._stop(service, now)

    def _stopped(self, service: str) -> None:
        pause = self._pauses.get(service)
        if pause is not None and pause.stopping:
            self._pauses.put(service, Pause(pause.times, pause.until))
            return
        self._crashes[service].reset()  # a person stopped it
        if pause is not None:
            self._pauses.put(service, None)

    def _tick(self, now: float) -> None:
        """Start the services whose pause has ended."""
        if not self._pauses and now < self._check_at:
            return
        self._check_at = now + CHECK_SECONDS
        try:
            for each in Supervisor(self._settings).services():
                self._look_at(each["name"], each["state"], now)
        except BullpenError as error:
            log.warning("cannot read the states of the services: %s", error)

    def _look_at(self, service: str, state: str, now: float) -> None:
        pause = self._pauses.get(service)
        if pause is None:
            if state == "FATAL":  # its event was lost with another guard
                self._give_up(service, now)
        elif state in ("FATAL", "STOPPED") and now >= pause.until:
            with start_lock(self._settings, 0.0):
                log.info("restarting %s after its pause", service)
                Supervisor(self._settings).start_nowait(service)
        elif state == RUNNING and now >= pause.until + CRASH_WINDOW_SECONDS:
            self._pauses.put(service, None)

    def _give_up(self, service: str, now: float) -> None:
        if self._pauses.begin(service, now).times == 1:
            self._notify_owner(service, "does not start")

    def _stop(self, service: str, now: float) -> None:
        """Stop a service and notify the owner, unless a person is starting or stopping services."""
        try:
            with start_lock(self._settings, 0.0):
                pause = self._pauses.begin(service, now, stopping=True)
                stopped = self._try_stop(service)
        except Overloaded as error:
            log.warning("%s crashes repeatedly and was not stopped: %s", service, error)
            return
        if not stopped:
            self._pauses.put(service, None)
        if pause.times == 1:
            outcome = "was stopped" if stopped else "could not be stopped"
            minutes = CRASH_WINDOW_SECONDS / 60
            self._notify_owner(
                service, f"crashed {MAX_CRASHES} times in {minutes:.0f} minutes and {outcome}"
            )

    def _try_stop(self, service: str) -> bool:
        """Stop a service; false if the supervisor refuses or does not answer."""
        try:
            Supervisor(self._settings).stop(service, STOP_SECONDS)
        except BullpenError as error:
            log.error("cannot stop %s: %s", service, error)
            return False
        return True

    def _notify_owner(self, service: str, what: str) -> None:
        log.error("%s %s", service, what)
        text = (
            f"The service {service} {what}. Pending messages stay queued. Bullpen restarts it, at"
            f" first after {PAUSE_SECONDS:.0f} seconds. `bullpen logs {service}` shows the cause;"
            f" `bullpen restart {service}` restarts it now."
        )
        try:
            store = open_store(self._settings)
            with store.write() as tx:
                send_to_owner(tx, text)
            store.close()
        except BullpenError as error:
            log.error("cannot notify the owner: %s (%s)", error, error.hint)


def run(settings: Settings) -> None:
    """Handle the supervisor's events until it ends."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    guard = CrashGuard(settings)
    log.info("ready: watching the services")
    while True:
        listener.ready(sys.stdout)
        line = sys.stdin.readline()
        if not line:
            return
        headers = get_headers(line)
        event = get_headers(sys.stdin.read(int(headers["len"])))
        guard.handle(headers["eventname"], event.get("processname", ""), time.monotonic())
        listener.ok(sys.stdout)
