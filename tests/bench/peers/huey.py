"""huey's SqliteHuey as a peer."""

from pathlib import Path

from . import stopwatch
from .durability import Durability, apply, verify
from .library import load
from .payload import PAYLOAD


def work(payload: str) -> int:
    """Return something, as huey stores no result for None."""
    return len(payload)


class HueyPeer:
    """Calls the task to enqueue it, then does what huey's consumer does for each task.

    huey documents no batches: `group` and `map` enqueue their tasks one by one as well.
    """

    def __init__(self, directory: Path, durability: Durability) -> None:
        """Open the queue, with `fsync` where that is the durability asked for.

        `fsync=False` would be OFF and unset is SQLite's own default, which is FULL in most
        builds: NORMAL has no setting and is put on the one connection that huey keeps.
        """
        self.name = "huey"
        huey = load("huey")
        options = {"fsync": True} if durability == "durable" else {}
        self._huey = huey.SqliteHuey(filename=str(directory / "huey.db"), **options)
        if durability == "fast":
            apply(self._huey.storage.conn, durability)
        verify(self._huey.storage.conn, durability)
        self._work = self._huey.task()(work)

    def cycle(self, count: int) -> list[float]:
        """Enqueue, dequeue and execute one task at a time."""
        seconds = stopwatch.laps(count, self._one)
        self._verify(count)
        return seconds

    def batch(self, count: int, size: int) -> float:
        """Enqueue tasks one by one, `size` at a time, then dequeue and execute those."""
        seconds = stopwatch.total(count, size, self._many)
        self._verify(count)
        return seconds

    def close(self) -> None:
        """Close huey's connection."""
        self._huey.storage.close()

    def _one(self) -> None:
        self._work(PAYLOAD)
        self._execute()

    def _many(self, size: int) -> None:
        for _ in range(size):
            self._work(PAYLOAD)
        for _ in range(size):
            self._execute()

    def _execute(self) -> None:
        task = self._huey.dequeue()
        if task is None:
            raise RuntimeError("huey had no task to dequeue")
        self._huey.execute(task)

    def _verify(self, count: int) -> None:
        left, results = len(self._huey), self._huey.result_count()
        if left or results != count:
            raise RuntimeError(f"huey left {left} tasks and stored {results} of {count} results")
        self._huey.storage.flush_results()
