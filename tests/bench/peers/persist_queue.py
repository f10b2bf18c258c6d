"""persist-queue's SQLiteAckQueue as a peer."""

from pathlib import Path

from . import stopwatch
from .durability import Durability, apply
from .library import load
from .payload import PAYLOAD


class PersistQueuePeer:
    """Puts, gets and acknowledges, each in a transaction of its own.

    An acknowledgement queue allows nothing but `auto_commit=True`, so it has no batches.
    """

    def __init__(self, directory: Path, durability: Durability) -> None:
        """Open the queue, which sets WAL by itself, on one connection."""
        self.name = "persist-queue"
        persistqueue = load("persistqueue")
        self._queue = persistqueue.SQLiteAckQueue(str(directory / "persist-queue"))
        apply(self._queue._conn, durability)
        self._last: int | None = None

    def cycle(self, count: int) -> list[float]:
        """Put, get and acknowledge one item at a time."""
        acknowledged = self._queue.acked_count() + count
        seconds = stopwatch.laps(count, self._one)
        self._verify(acknowledged)
        return seconds

    def batch(self, count: int, size: int) -> float:
        """Put items one by one, `size` at a time, then get and acknowledge those."""
        acknowledged = self._queue.acked_count() + count
        seconds = stopwatch.total(count, size, self._many)
        self._verify(acknowledged)
        return seconds

    def close(self) -> None:
        """Close the queue's connection."""
        self._queue.close()

    def _one(self) -> None:
        self._queue.put(PAYLOAD)
        self._queue.ack(id=self._get())

    def _many(self, size: int) -> None:
        for _ in range(size):
            self._queue.put(PAYLOAD)
        for item in [self._get() for _ in range(size)]:
            self._queue.ack(id=item)

    def _get(self) -> int:
        """Get the item after the last one, as a plain `get` walks past all acknowledged ones.

        An empty queue raises `persistqueue.Empty`.
        """
        following = self._last is not None
        item = self._queue.get(block=False, id=self._last, next_in_order=following, raw=True)
        self._last = int(item["pqid"])
        return self._last

    def _verify(self, acknowledged: int) -> None:
        left, found = self._queue.active_size(), self._queue.acked_count()
        if left or found != acknowledged:
            message = f"persist-queue left {left} items, {found} of {acknowledged} acknowledged"
            raise RuntimeError(message)
