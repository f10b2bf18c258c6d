"""What a process does on a disk that fails it: a child, for its limits and rights are its own."""

from __future__ import annotations

import json
import os
import resource
from contextlib import suppress
from pathlib import Path

from bullpen.core.errors import BullpenError, DuplicateMessage
from bullpen.core.queue.enqueue import enqueue
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from tests.crash.children import append
from tests.crash.work import Order, Task

NOBODY = 65534
AGENT = "alpha"
PADDING = 20_000


def put(store: Store, number: int) -> str:
    """Enqueue one message of some size; gives its id."""
    task = Task("p" * PADDING, number, Order.ANSWER)
    with store.write() as tx:
        return enqueue(tx, task.to(AGENT, f"disk-{number}")).message_id


def put_until_refused(store: Store, most: int = 2000) -> tuple[list[str], BullpenError]:
    """Enqueue until the store says no; gives the ids that it took, and its word."""
    taken: list[str] = []
    for number in range(most):
        try:
            taken.append(put(store, number))
        except BullpenError as error:
            return taken, error
    raise AssertionError(f"{most} messages had room")


def tell(path: Path, error: BullpenError | None, ids: list[str]) -> None:
    """Write down for the test what happened."""
    kind = None if error is None else type(error).__name__
    append(path, json.dumps([kind, None if error is None else [error.code, error.hint], ids]))


def limited(settings: Settings, report: Path, size: int) -> None:
    """Fill a file that may not grow over a size; then lift the limit and send the last again."""
    store = open_store(settings)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    taken, error = put_until_refused(store)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    tell(report, error, taken)
    try:
        again = [put(store, len(taken))]
    except DuplicateMessage:
        again = []
    tell(report, None, again)
    store.close()


def filled(settings: Settings, report: Path, ballast: Path) -> None:
    """Fill a real file system to the last byte; then make room and send the last again."""
    store = open_store(settings)
    taken, error = put_until_refused(store)
    tell(report, error, taken)
    ballast.unlink()
    tell(report, None, [put(store, len(taken))])
    store.close()


def full_before_opening(settings: Settings, report: Path) -> None:
    """Fill a real file system to the last byte; then open the database and enqueue."""
    with (settings.home / "filler").open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4096)):
            pass
    try:
        store = open_store(settings)
        _, error = put_until_refused(store)
    except BullpenError as refusal:
        error = refusal
    tell(report, error, [])


def unprivileged(settings: Settings, report: Path) -> None:
    """Try to write as somebody whom rights bind."""
    file = os.open(report, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    told: list[object] = [None, None, []]
    try:
        told[2] = [put(open_store(settings), 1)]
    except BullpenError as error:
        told[:2] = [type(error).__name__, [error.code, error.hint]]
    os.write(file, f"{json.dumps(told)}\n".encode())
    os.close(file)
