"""litequeue's LiteQueue as a peer."""

from pathlib import Path
from typing import Any

from . import stopwatch
from .durability import Durability, apply
from .library import load
from .payload import PAYLOAD


class LiteQueuePeer:
    """Puts, pops and marks as done; its `transaction()` groups all but the pops.

    A pop opens a transaction of its own and cannot be nested in another. Python 3.11 gets
    litequeue 0.9; Python 3.12 gets 0.14, where `done` asks for the claim.
    """

    def __init__(self, directory: Path, durability: Durability) -> None:
        """Open the queue, which sets WAL and NORMAL by itself."""
        self.name = "litequeue"
        self._queue: Any = load("litequeue").LiteQueue(str(directory / "litequeue.db"))
        apply(self._queue.conn, durability)
        self._claims = hasattr(self._queue, "retry_expired")
        self._unfinished = self._queue.active_count if self._claims else self._queue.qsize

    def cycle(self, count: int) -> list[float]:
        """Put, pop and finish one message at a time."""
        seconds = stopwatch.laps(count, self._one)
        self._verify()
        return seconds

    def batch(self, count: int, size: int) -> float:
        """Put `size` in a transaction, pop them one by one, finish them in one."""
        seconds = stopwatch.total(count, size, self._many)
        self._verify()
        return seconds

    def close(self) -> None:
        """Close the queue's connections."""
        self._queue.close()

    def _one(self) -> None:
        self._queue.put(PAYLOAD)
        self._done(self._pop())

    def _many(self, size: int) -> None:
        with self._queue.transaction():
            for _ in range(size):
                self._queue.put(PAYLOAD)
        claimed = [self._pop() for _ in range(size)]
        with self._queue.transaction():
            for message in claimed:
                self._done(message)

    def _pop(self) -> Any:
        message = self._queue.pop()
        if message is None:
            raise RuntimeError("litequeue had no message to pop")
        return message

    def _done(self, message: Any) -> None:
        if self._claims:
            self._queue.done(message.message_id, claim_id=message.claim_id)
        else:
            self._queue.done(message.message_id)

    def _verify(self) -> None:
        left = self._unfinished()
        if left:
            raise RuntimeError(f"litequeue left {left} messages unfinished")
