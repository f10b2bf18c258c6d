"""The queues that Bullpen is measured against, all driven through one small protocol."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from .durability import Durability
from .huey import HueyPeer
from .litequeue import LiteQueuePeer
from .payload import PAYLOAD
from .persist_queue import PersistQueuePeer
from .pgqueuer import PgQueuerPeer
from .procrastinate import ProcrastinatePeer
from .tinyagi import TinyAGIPeer

__all__ = ["PAYLOAD", "Durability", "Peer", "postgres_peers", "sqlite_peers"]


class Peer(Protocol):
    """One queue under measurement; it is opened and set up before anything is timed."""

    name: str

    def cycle(self, count: int) -> list[float]:
        """Enqueue one message, claim it and finish it, `count` times; the seconds of each."""
        ...

    def batch(self, count: int, size: int) -> float:
        """Put `count` messages through, `size` to a transaction where offered; total seconds."""
        ...

    def close(self) -> None:
        """Close every connection that the peer holds."""
        ...


def sqlite_peers(directory: Path, durability: Durability) -> list[Peer]:
    """Open the SQLite peers, each on a file of its own under the empty `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    return _opened(
        lambda: HueyPeer(directory, durability),
        lambda: LiteQueuePeer(directory, durability),
        lambda: PersistQueuePeer(directory, durability),
        lambda: TinyAGIPeer(directory, durability),
    )


def postgres_peers(url: str) -> list[Peer]:
    """Open the PostgreSQL peers, each in a fresh schema of its own in the database at `url`."""
    return _opened(
        lambda: ProcrastinatePeer(url),
        lambda: PgQueuerPeer(url),
    )


def _opened(*peers: Callable[[], Peer]) -> list[Peer]:
    """Open all `peers`, or close again those already open where one cannot be."""
    opened = []
    with ExitStack() as stack:
        for peer in peers:
            opened.append(peer())
            stack.callback(opened[-1].close)
        stack.pop_all()
    return opened
