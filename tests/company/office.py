"""A company at work: agents behind the stand-in command line, and real processors."""

from __future__ import annotations

import os
import stat
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from sqlalchemy import func, select

from bullpen.core.intake import submit
from bullpen.core.message import NewMessage
from bullpen.core.models import MESSAGES
from bullpen.core.settings import Settings
from bullpen.core.states import TERMINAL_STATES, MessageState
from bullpen.core.store.base import Store
from bullpen.core.store.statement import Statement
from tests.crash.processors import Processors
from tests.crash.processors import processing as crash_processing
from tests.processor.working import eventually

STANDIN = Path(__file__).with_name("standin.py")
OVER = {state.value for state in TERMINAL_STATES} | {MessageState.HELD.value}
STATES: Statement[tuple[str, int]] = Statement(
    lambda: select(MESSAGES.c.status, func.count()).group_by(MESSAGES.c.status)
)


def install(settings: Settings) -> dict[str, str]:
    """Put the stand-in where `claude` is looked for; gives what a processor needs to find it."""
    program = settings.home / "bin" / "claude"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!{sys.executable} -IS\n{STANDIN.read_text()}")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {"PATH": f"{program.parent}:{os.environ.get('PATH', os.defpath)}"}


@contextmanager
def processors(settings: Settings, count: int = 1, **changes: object) -> Iterator[Processors]:
    """Real processors that find the stand-in."""
    with crash_processing(settings, count, environ=install(settings), **changes) as made:
        yield made


def write(store: Store, text: str, **more: object) -> str:
    """A person writes; gives the id of the conversation."""
    new = NewMessage(agent="", message=text, channel="cli", sender="owner", **more)  # type: ignore[arg-type]
    with store.write() as tx:
        return submit(tx, new)[0].message_id


def wait_until_over(store: Store) -> Counter[str]:
    """Wait until nothing is under way any more; gives how many messages are in which state."""
    found: Counter[str] = Counter()

    def over() -> bool:
        nonlocal found
        with store.read() as tx:
            found = Counter(dict(tx.all(STATES, {})))
        return found.keys() <= OVER

    eventually(over, "nothing is under way", 240)
    return found


def log_of(settings: Settings) -> list[list[str]]:
    """What the stand-ins wrote down: agent, process id, what."""
    log = settings.home / "runs.log"
    whole, _, _ = log.read_text().rpartition("\n") if log.exists() else ("", "", "")
    return [line.split() for line in whole.splitlines()]


def living(settings: Settings) -> list[int]:
    """The processes that runs of this home have started and that are alive."""
    found = []
    for process in psutil.process_iter():
        try:
            environ = process.environ()
            ours = environ.get("BULLPEN_HOME") == str(settings.home) and "BULLPEN_RUN" in environ
            if ours and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found
