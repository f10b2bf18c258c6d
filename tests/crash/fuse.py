"""How a process dies within a transaction: before its n-th statement, or as COMMIT is under way."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any, NoReturn

from bullpen.core.store.postgres import COMMIT, PipelineContext, PipelineTransaction
from bullpen.core.store.transaction import Transaction


class Fuse:
    """Counts the statements of a transaction and kills the process before the n-th."""

    def __init__(self, tx: Transaction, statement: int) -> None:
        self._tx = tx
        self._left = statement
        for name in ("_cursor", "_pipe"):
            if hasattr(tx, name):
                setattr(tx, name, Counted(getattr(tx, name), self.step))

    def step(self) -> None:
        """One more is to begin."""
        self._left -= 1
        if self._left == 0:
            arrive(self._tx)
            os.kill(os.getpid(), signal.SIGKILL)


class Counted:
    """A driver's cursor, or a pipe, that tells of every statement before it begins."""

    def __init__(self, driver: Any, step: Callable[[], None]) -> None:  # noqa: ANN401
        self._driver = driver
        self._step = step

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the driver has
        found = getattr(self._driver, name)
        if name not in ("execute", "executemany", "send"):
            return found

        def told(*given: object, **options: object) -> Any:  # noqa: ANN401
            self._step()
            return found(*given, **options)

        return told


def arrive(tx: Transaction) -> None:
    """Let the server have done what the pipe still holds; SQLite has done everything."""
    if isinstance(tx, PipelineTransaction):
        tx.fetch("SELECT 1")


def die_when_commit_is_sent() -> None:
    """On PostgreSQL: send this process's next COMMIT off and do not wait for the answer."""

    def commit(piped: PipelineContext) -> NoReturn:
        pipe = piped._pipe
        pipe.send(COMMIT, {})
        pipe.mark()
        while pipe._pg.flush():
            pass
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("SIGKILL does not return")

    setattr(PipelineContext, "_commit", commit)  # noqa: B010 - mypy knows it for a method
