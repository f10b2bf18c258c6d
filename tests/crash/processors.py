"""Real processors, and a scheduler: `bullpen run` in processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil
from sqlalchemy import bindparam, func, select

from bullpen.core.message import NewMessage, ReplyTo
from bullpen.core.models import LANES, MESSAGES, WORKERS
from bullpen.core.queue.enqueue import enqueue_many
from bullpen.core.settings import Settings
from bullpen.core.states import TERMINAL_STATES
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement
from tests.crash.children import LIMIT, until
from tests.crash.work import CHANNEL

ROOT = Path(__file__).parents[2]
WAKE_SECONDS = 0.5
"""How much sooner a scheduler wakes than the processors after a sleep of the machine."""
COMMAND = [sys.executable, "-c", "from bullpen.cli.main import main; main()", "run"]

WORKER: Statement[tuple[str]] = Statement(
    lambda: select(WORKERS.c.id).where(WORKERS.c.kind == bindparam("kind")).order_by(WORKERS.c.id)
)
STATES: Statement[tuple[str, int]] = Statement(
    lambda: select(MESSAGES.c.status, func.count()).group_by(MESSAGES.c.status)
)
RUNNING: Statement[tuple[str, str]] = Statement(
    lambda: (
        select(MESSAGES.c.message_id, WORKERS.c.pid)
        .join(WORKERS, WORKERS.c.id == MESSAGES.c.claimed_by)
        .where(MESSAGES.c.status == "processing")
    )
)


class Processors:
    """The processors of one store, and the scheduler that takes back what dead ones had."""

    def __init__(
        self, settings: Settings, environ: Mapping[str, str] | None = None, **changes: object
    ) -> None:
        self._logs: dict[int, Path] = {}
        self._home = settings.home
        self._all: list[subprocess.Popen[bytes]] = []
        self._schedulers: list[subprocess.Popen[bytes]] = []
        self._environ = {
            **os.environ,
            "PYTHONFAULTHANDLER": "1",
            "BULLPEN_HOME": str(settings.home),
            "BULLPEN_WORKSPACE": str(settings.workspace),
            "BULLPEN_DATABASE_URL": settings.database_url,
            **{f"BULLPEN_{name.upper()}": str(value) for name, value in changes.items()},
            **(environ or {}),
        }

    def start(self) -> subprocess.Popen[bytes]:
        """Start one."""
        process = self._run("processor")
        self._all.append(process)
        return process

    def schedule(self) -> None:
        """Start a scheduler."""
        self._schedulers.append(self._run("scheduler"))

    def alive(self) -> list[subprocess.Popen[bytes]]:
        """Those that run."""
        return [process for process in self._all if process.poll() is None]

    def keep(self, count: int) -> None:
        """As the supervisor does: start as many as are missing."""
        for _ in range(count - len(self.alive())):
            self.start()

    def stop(self, *, ready: bool = True) -> None:
        """SIGTERM, and wait; each must end well.

        Without `ready` they are known to listen to signals, which one that has just begun does not.
        """
        if ready:
            self.wait_until_ready()
        for process in (*self.alive(), *self._schedulers):
            log = self._logs[process.pid]
            process.terminate()
            try:
                assert process.wait(LIMIT) == 0, log.read_text()
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGABRT)  # it says where each of its threads is
                process.wait()
                raise AssertionError(f"it does not stop:\n{log.read_text()}") from None

    def wait_until_ready(self) -> None:
        """Until each that runs has begun its work: before, it ends by what it survives later."""
        for process in (*self.alive(), *self._schedulers):
            log = self._logs[process.pid]
            until(lambda log=log: " is ready" in log.read_text(), "it is ready")  # type: ignore[misc]

    def said(self) -> str:
        """What all of them wrote."""
        return "\n".join(f"{pid}:\n{log.read_text()}" for pid, log in self._logs.items())

    def kill(self) -> None:
        """SIGKILL those that run."""
        for process in (*self._all, *self._schedulers):
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()

    def _run(self, what: str) -> subprocess.Popen[bytes]:
        path = self._home / f"{what}-{len(self._logs)}.log"
        with path.open("wb") as log:
            process = subprocess.Popen(
                [*COMMAND, what], env=self._environ, cwd=ROOT, stdout=log, stderr=log
            )
        self._logs[process.pid] = path
        return process

    @contextmanager
    def asleep(self) -> Iterator[None]:
        """SIGSTOP each of them and what it has started, as a machine that sleeps; then SIGCONT.

        The schedulers wake first: they look at the leases before anybody could extend one.
        """
        parents = [psutil.Process(each.pid) for each in (*self._schedulers, *self.alive())]
        everyone = [*parents, *(each for one in parents for each in one.children(recursive=True))]
        for each in everyone:
            each.suspend()
        try:
            yield
        finally:
            for number, each in enumerate(everyone):
                if number == len(self._schedulers):
                    time.sleep(WAKE_SECONDS)
                each.resume()

    def end_leases_of_the_dead(self, store: Store) -> None:
        """Let the time be over for which the dead ones had claimed something."""
        dead = [process.pid for process in self._all if process.poll() is not None]
        gone = select(WORKERS.c.id).where(WORKERS.c.pid.in_(dead))
        theirs = LANES.c.claimed_by.in_(gone) & LANES.c.claim_token.is_not(None)
        with store.engine.begin() as connection:
            connection.execute(LANES.update().where(theirs).values(lease_expires_at=1, lease_ms=1))


@contextmanager
def processing(
    settings: Settings, count: int, environ: Mapping[str, str] | None = None, **changes: object
) -> Iterator[Processors]:
    """A scheduler and so many processors, none of which is left afterwards."""
    processors = Processors(settings, environ, **changes)
    try:
        processors.schedule()
        for _ in range(count):
            processors.start()
        processors.wait_until_ready()
        yield processors
    except AssertionError:
        print(processors.said()[-10_000:])
        raise
    finally:
        processors.kill()


def wait_for_workers(store: Store, count: int) -> list[str]:
    """Wait until the scheduler and so many processors have registered; gives the names of these."""

    def names(kind: str) -> list[str]:
        with store.read() as tx:
            return [name for (name,) in tx.all(WORKER, {"kind": kind})]

    until(lambda: len(names("scheduler")) > 0, "the scheduler is ready")
    until(lambda: len(names("processor")) == count, f"{count} processors are ready")
    return names("processor")


def wait_for_states(store: Store, states: dict[str, int], limit: float = LIMIT) -> None:
    """Wait until so many messages are in each of these states, and none in another."""
    seen: dict[str, int] = {}

    def reached() -> bool:
        nonlocal seen
        with store.read() as tx:
            seen = {state: count for state, count in tx.all(STATES, {})}  # noqa: C416
        return seen == states

    try:
        until(reached, f"{states}", limit)
    except AssertionError as error:
        raise AssertionError(f"{error}; it is {seen}") from error


def finished(states: dict[str, int]) -> int:
    """How many of them are in a final state."""
    return sum(count for state, count in states.items() if state in TERMINAL_STATES)


def holder(store: Store, message_id: str) -> int:
    """Wait until this message is running; gives its processor's process id."""
    found: dict[str, int] = {}

    def running() -> bool:
        with store.read() as tx:
            found.update((id_, int(pid)) for id_, pid in tx.all(RUNNING, {}))
        return message_id in found

    until(running, f"{message_id} is claimed")
    return found[message_id]


def ask(store: Store, agent: str, *texts: str, prefix: str = "ask") -> list[str]:
    """Enqueue these texts in one transaction; gives their ids."""
    news = [
        NewMessage(
            agent=agent,
            message=text,
            message_id=f"{prefix}-{agent}-{number}",
            channel=CHANNEL,
            sender="Ada",
            reply_to=ReplyTo("C1"),
        )
        for number, text in enumerate(texts)
    ]
    with store.write() as tx:
        return [each.message_id for each in enqueue_many(tx, news)]
